"""Readers of other tools' results."""
