"""Measurements of unmask, and the mock endpoint they run against. Not part of the installed package."""
