"""The way of a row, one module a step."""
