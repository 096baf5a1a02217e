"""Where the servers of a sweep run: processes of this machine, or actors of a Ray cluster."""
