"""Embedded rule-based models that answer in the process, without a network."""
