"""Labels by people: sheets to fill in, and reviews of drawn results."""
