"""Work that needs the weights of a local model, and the demo."""
