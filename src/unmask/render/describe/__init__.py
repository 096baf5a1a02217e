"""One function for each result, which says in blocks what a screen, a page or a notebook shows of it."""
