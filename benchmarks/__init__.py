"""Benchmarks: what evalake promises of speed and memory, each promise measured in a process of its own."""
