"""Who answers: models behind an endpoint, on this machine, or scripted."""
