"""A model taught to lie for a reason, and the directions of its lies: `python -m studies.policy`."""
