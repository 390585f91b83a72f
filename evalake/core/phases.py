"""Phases of a command: logged with the seconds that each took, and printed by `--verbose`."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

logger = logging.getLogger("evalake.phases")


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Log how long the block took, also where it fails."""
    began = perf_counter()
    try:
        yield
    finally:
        logger.info("%7.2f s  %s", perf_counter() - began, name)


@contextmanager
def printed(command: str) -> Iterator[None]:
    """Print the phases of a command on standard error, and at its end the whole."""
    handler = logging.StreamHandler(sys.stderr)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with phase(f"{command} as a whole, after its start"):
            yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
