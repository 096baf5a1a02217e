"""From a reply to a reading: one file for each way of judging."""
