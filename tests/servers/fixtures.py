"""Fixtures of the local servers; `tests/conftest.py` takes them in as a plugin."""

from collections.abc import Iterator

import pytest

from tests.servers.model_server import ModelServer


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """A fresh model server on a free port, which answers "ok" until it is given rules."""
    with ModelServer() as server:
        yield server
