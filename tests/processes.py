"""Processes that do something at once in tests: copies of one that has imported what each would import for seconds."""

import multiprocessing
from multiprocessing.context import ForkServerContext

_IMPORTED = [
    "pytest",
    "evalake.storage.ledger",
    "evalake.storage.landing",
    "evalake.storage.maintenance",
    "evalake.storage.migrations",
]


def process_context() -> ForkServerContext:
    """Return how `multiprocessing` starts them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    return context
