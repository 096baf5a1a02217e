"""Making a run: settings, planning, requests, and the end of it."""
