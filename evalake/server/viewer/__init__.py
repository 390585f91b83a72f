"""Runs and their metrics, for any suite."""
