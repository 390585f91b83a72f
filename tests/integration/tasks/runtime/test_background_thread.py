"""Work beside a block runs in its context, is told when the block ends, however that is, and is waited for."""

import threading
from contextvars import ContextVar

import pytest

from evalake.tasks.runtime.progress import background_thread

NAME = ContextVar("NAME", default="nobody")


def test_it_runs_in_the_same_context_until_the_block_has_ended() -> None:
    seen: list[tuple[str, str]] = []
    begun = threading.Event()

    def work(over: threading.Event) -> None:
        begun.set()
        over.wait()
        seen.append((NAME.get(), threading.current_thread().name))

    token = NAME.set("ann")
    try:
        with background_thread(work, "worker"):
            assert begun.wait(30)
            assert seen == []
        assert seen == [("ann", "worker")]
    finally:
        NAME.reset(token)


def test_a_block_that_fails_ends_it_too() -> None:
    ended: list[bool] = []

    def work(over: threading.Event) -> None:
        ended.append(over.wait(30))

    with pytest.raises(ValueError, match="no"), background_thread(work, "worker"):
        raise ValueError("no")
    assert ended == [True]
