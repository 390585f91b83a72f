"""The watch goes on, whatever it meets."""

import asyncio

import pytest

from core.errors import LakeError
from service.scoring.monitor import ScoringMonitor
from service.scoring.prefect_gateway import PrefectGateway
from service.scoring.scorings import Scorings, State


@pytest.mark.parametrize("error", [LakeError("no table"), FileNotFoundError("part-0"), ValueError("<html>")])
def test_the_watch_goes_on_whatever_a_look_ran_into(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looked: asyncio.Queue[State] = asyncio.Queue()

    class Flaky(Scorings):
        def __init__(self) -> None:
            self.looks = 0

        def state(self) -> State:
            self.looks += 1
            if self.looks <= 2:
                raise error
            looked.put_nowait(State())
            return State()

    async def watch() -> None:
        watching = asyncio.create_task(ScoringMonitor(Flaky(), PrefectGateway("nowhere", None), 60).run())
        await asyncio.wait([watching, asyncio.create_task(looked.get())], return_when=asyncio.FIRST_COMPLETED)
        assert not watching.done()
        watching.cancel()

    monkeypatch.setattr("service.scoring.monitor.LOOK_SECONDS", 0.001)
    asyncio.run(watch())
    assert [str(error) in record.getMessage() for record in caplog.records if record.name == "evalake.service"] == [
        True
    ]
