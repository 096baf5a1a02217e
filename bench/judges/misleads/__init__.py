"""How well a judge answers what a reply leads its reader to believe, against labels that language models gave."""
