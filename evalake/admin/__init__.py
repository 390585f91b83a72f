"""What is not a run: imports, checks, labels, canaries, maintenance."""
