"""Values that other people have published, with their sources."""
