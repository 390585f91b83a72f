"""Processes that do something at once in tests, each started by itself."""

import multiprocessing
from multiprocessing.context import SpawnContext


def process_context() -> SpawnContext:
    """Return how `multiprocessing` starts them."""
    return multiprocessing.get_context("spawn")
