"""Research next to the package: run with python -m, not in the wheel."""
