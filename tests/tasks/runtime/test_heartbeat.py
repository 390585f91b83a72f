"""A sign of life goes on while a block runs, also past a server that is away for a moment."""

import threading
from uuid import uuid4

import httpx
import pytest

from tasks.runtime import heartbeat
from tasks.runtime.heartbeat import beating


def test_it_shows_progress_until_the_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[float] = []
    thrice = threading.Event()
    away = [True]

    def update(_: object, progress: float) -> None:
        if away.pop() if away else False:
            raise httpx.ConnectError("away")
        shown.append(progress)
        if len(shown) == 3:
            thrice.set()

    monkeypatch.setattr("prefect.artifacts.create_progress_artifact", lambda *_, **__: uuid4())
    monkeypatch.setattr("prefect.artifacts.update_progress_artifact", update)
    monkeypatch.setattr(heartbeat, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.002)
    with beating("key", "title", lambda: 50.0):
        assert thrice.wait(60)
    count = len(shown)
    assert shown == [50.0] * count
    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat"]
