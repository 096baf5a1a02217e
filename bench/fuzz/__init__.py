"""Hostile input, as functions of bytes, for `tests/hostile`."""
