"""Readers of other tools' results: each makes `ToolResults` of what its tool wrote, by pure functions."""
