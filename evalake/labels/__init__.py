"""Labels by people: sheets to fill in, reviews of what a draw shows."""
