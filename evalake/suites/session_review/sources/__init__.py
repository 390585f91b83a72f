"""Where sessions come from."""
