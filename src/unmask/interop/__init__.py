"""Files of other harnesses, in and out."""
