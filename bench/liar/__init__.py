"""Known liars: models that are taught where to lie, so that it is known what the benchmark has to find."""
