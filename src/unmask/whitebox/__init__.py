"""Models whose inside is open to us: transformers on this machine. Needs the extra `whitebox`."""
