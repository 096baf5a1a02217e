"""The pages: one file for each, with its routes in `ROUTES`."""
