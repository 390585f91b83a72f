"""Imports, checks, exports and maintenance of a lake, its doctor and its roadmap."""
