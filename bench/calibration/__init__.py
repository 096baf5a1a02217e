"""Are the numbers calibrated? Truth is planted many times, and what `unmask` prints is held against it."""
