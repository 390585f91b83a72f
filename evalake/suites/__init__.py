"""What is evaluated: one folder per suite."""
