"""The demonstration: a taught liar, its answer key, and a recorded run."""
