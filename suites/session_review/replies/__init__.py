"""What a judge's two answers say, read from their text."""
