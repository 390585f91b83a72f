"""Attacks that once succeeded, carried out against real processes."""
