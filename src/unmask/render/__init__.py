"""What people see: terminal, web page, figures."""
