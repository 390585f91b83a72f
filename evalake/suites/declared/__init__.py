"""Suites that are declared in files or by results of other tools."""
