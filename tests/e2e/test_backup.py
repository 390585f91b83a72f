"""Backup and restore as docs/backup.md says, of a lake that is being written to."""

import os
import re
import subprocess
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

import polars as pl
import pytest

from evalake.admin.check import check_lake
from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import CALLS, RUNS, SNAPSHOTS
from evalake.storage import ledger
from evalake.storage.integrity import inspect
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.registry import suite
from tests.e2e.processes import PATIENCE_SECONDS
from tests.integration.cli.command import ROOT, recorded
from tests.integration.storage.rows import TOYS, call, toy

pytestmark = pytest.mark.e2e

DOCUMENT = ROOT / "docs" / "backup.md"


def _write(uri: str, started: Event, stop: Event) -> None:
    """Merge, replace, append and compact until told to stop."""
    lake = Lake(uri)
    number = 0
    while not stop.is_set():
        ledger.append(lake, [call(1000 + number)])
        land(lake, TOYS, pl.DataFrame([toy(f"later{number}", state="early")]))
        land(lake, TOYS, pl.DataFrame([toy(f"later{number}", state="final")]))
        if number % 5 == 4:
            ledger.compact(lake)
        number += 1
        started.set()


def test_a_lake_copied_while_it_is_written_to_is_whole_and_has_all_that_was_committed(tmp_path: Path) -> None:
    lake, backup = Lake(str(tmp_path / "lake")), tmp_path / "backup"
    (tmp_path / "results.jsonl").write_text("\n".join(recorded(n) for n in range(8)))
    import_recorded(lake, suite("command_guard"), [tmp_path / "results.jsonl"])
    spawn = get_context("spawn")
    started, stop = spawn.Event(), spawn.Event()
    writer = spawn.Process(target=_write, args=(lake.uri, started, stop))
    writer.start()
    try:
        assert started.wait(PATIENCE_SECONDS)
        tables = (CALLS, TOYS, RUNS, RESULTS, SNAPSHOTS)
        committed = [(contract, lake.version(contract) or 0, lake.frame(contract).collect()) for contract in tables]
        (script,) = re.findall(r"```sh\n(set -eu\n.*?)```", DOCUMENT.read_text(), re.DOTALL)
        environment = {**os.environ, "LAKE": lake.uri, "BACKUP": str(backup)}
        done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert (lake.version(CALLS) or 0) > committed[0][1]  # it was written to meanwhile
    finally:
        stop.set()
        writer.join()
    subprocess.run(["cp", "-a", str(backup), str(tmp_path / "restored")], check=True)
    restored = Lake(str(tmp_path / "restored"))
    for contract, version, rows in committed:
        key = list(contract.key)
        there = restored.frame(contract).collect()
        assert rows.join(there, on=key, how="anti").is_empty(), contract.table
        assert (restored.version(contract) or 0) >= version
    assert inspect(restored, TOYS).damage == []
    assert [table.findings for table in check_lake(restored) if table.findings] == []
