"""The checks behind `unmask data check`, one module per question. Each is a function from all scenarios to problems."""
