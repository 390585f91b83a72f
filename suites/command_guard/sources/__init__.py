"""Where commands come from."""
