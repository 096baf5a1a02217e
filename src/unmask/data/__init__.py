"""Scenarios: where they come from, which ones a run uses, and what is wrong with them."""
