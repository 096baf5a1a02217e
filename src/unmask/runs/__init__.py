"""The run folder: what it holds, and what follows from it."""
