"""Hostile input, as functions of bytes: run by atheris (`python -m bench.fuzz`) and, more briefly, by the suite."""
