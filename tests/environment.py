"""The environment of the tests' own process, changed no more than is needed."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def environment_kept(changes: Mapping[str, str] | None = None) -> Iterator[None]:
    """Set variables, and put back afterwards whatever differs by then.

    `unittest.mock.patch.dict` would remove all variables and set them anew. The C library crashes where one thread
    reads the environment while another adds to it, and a thread of Polars that has seen an object store reads it every
    few moments.
    """
    before = dict(os.environ)
    os.environ.update(changes or {})
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update({name: value for name, value in before.items() if os.environ.get(name) != value})
