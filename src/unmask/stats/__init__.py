"""Rates, their intervals, and what else is computed from verdicts. Pure: no files, clocks, randomness or network."""
