"""Hostile input, as functions of bytes: the same targets are run by atheris (`python -m bench.fuzz`) and by the suite."""
