"""Scores on demand: the API, its events, and the processes beside it."""
