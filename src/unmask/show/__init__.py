"""What people see of a score: text for a terminal."""
