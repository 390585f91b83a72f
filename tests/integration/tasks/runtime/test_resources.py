"""Clients of a process that serves many runs: shared within an attempt of a run, and not kept for ever."""

import subprocess
import sys
from pathlib import Path

import pytest

from evalake.core.configuration import Configuration
from evalake.core.errors import ProviderError
from evalake.storage.lake import Lake
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.resources import IDLE_CLIENTS, RunOverError, client_of, end_attempt, release_client


def context(run_id: str, attempt: str = "1") -> RunContext:
    return RunContext(run_id, "command_guard", Lake("nowhere"), Configuration(), attempt)


def test_all_batches_of_an_attempt_share_a_client_and_the_next_attempt_has_its_own() -> None:
    with client_of(context("shared")) as first, client_of(context("shared")) as second:
        assert first is second
    with client_of(context("shared")) as third, client_of(context("shared", attempt="2")) as other:
        assert third is first
        assert other is not first
    release_client(context("shared"))
    release_client(context("shared", attempt="2"))


def test_a_batch_that_outlives_its_run_asks_nothing() -> None:
    with client_of(context("over")) as client:
        end_attempt(context("over"))
    with pytest.raises(ProviderError, match="closed"):
        client.run([])
    with pytest.raises(RunOverError, match="over"), client_of(context("over")):
        pass
    with client_of(context("over", attempt="2")) as again:
        assert again.run([]) == []
    release_client(context("over", attempt="2"))


def test_clients_that_nobody_uses_are_closed_once_there_are_many() -> None:
    with client_of(context("oldest")) as oldest, client_of(context("used")) as used:
        pass
    with client_of(context("used")):
        for number in range(IDLE_CLIENTS):
            with client_of(context(f"later {number}")) as latest:
                pass
    with client_of(context("used")) as still, client_of(context("oldest")) as anew:
        assert still is used
        assert anew is not oldest
    with pytest.raises(ProviderError, match="closed"):
        oldest.run([])
    assert latest is not oldest
    for run_id in ("oldest", "used", *(f"later {number}" for number in range(IDLE_CLIENTS))):
        release_client(context(run_id))


IDLE_AT_THE_END = """
from pathlib import Path
from evalake.core.configuration import Configuration
from evalake.storage.lake import Lake
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.resources import client_of
async def nothing():
    pass
for attempt in "12":
    with client_of(RunContext("r", "command_guard", Lake("nowhere"), Configuration(), attempt)) as client:
        client.run([nothing()])
print("done")
"""


def test_a_process_ends_that_still_has_clients() -> None:
    ended = subprocess.run([sys.executable, "-c", IDLE_AT_THE_END], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_a_worker_that_sees_another_lake_under_the_same_name_refuses(tmp_path: Path) -> None:
    from evalake.contracts.tables import CALLS
    from evalake.core.errors import LakeError
    from evalake.tasks.batch import require_ledger

    here, there = Lake(str(tmp_path / "here")), Lake(str(tmp_path / "there"))
    planned = str(here.ensure(CALLS).metadata().id)
    require_ledger(here, planned)
    for lake in (there, Lake(str(tmp_path / "empty"))):
        if lake is there:
            lake.ensure(CALLS)
        with pytest.raises(LakeError, match="does not find the lake of the run"):
            require_ledger(lake, planned)
    assert not (tmp_path / "empty").exists()
