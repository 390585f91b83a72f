"""What `evalake forget` does: choose samples, find all that was made of them, remove it."""
