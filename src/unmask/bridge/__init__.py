"""Other harnesses' files: Inspect logs in and out, and folders as the reference code writes them."""
