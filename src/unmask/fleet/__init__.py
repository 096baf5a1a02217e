"""Model servers of our own: placing them, watching them, ending them."""
