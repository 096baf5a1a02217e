"""How time and memory grow with the length of a journal."""
