"""Faults on purpose, bounded and seeded: `make chaos` injects them, and says what held."""
