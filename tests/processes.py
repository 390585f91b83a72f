"""Processes that do something at once in tests: copies of one that has imported what each would import for seconds."""

import multiprocessing
from multiprocessing.context import ForkServerContext

_IMPORTED = ["pytest", "storage.ledger", "storage.landing", "storage.maintenance", "storage.migrations"]


def process_context() -> ForkServerContext:
    """Return how `multiprocessing` starts them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    return context
