"""Two runs of one order: the second waits for the first where both have batch jobs, and is told of other machines."""

import logging
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evalake.storage.lake import Lake
from evalake.tasks.runtime.orders import in_turn, warn_of_other_machines
from evalake.tasks.runtime.progress import logger
from evalake.tasks.runtime.runs import Run, save

ORDER = {"limit": 5, "models": ["m"], "day": "2026-11-28"}
HOLD = """
import sys
from evalake.storage.lake import Lake
from evalake.tasks.runtime.orders import in_turn, warn_of_other_machines
with in_turn(Lake(sys.argv[1]), "toys", {"limit": 5, "models": ["m"], "note": "nightly"}, "one"):
    print("holds", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("ends", ["by itself", "by a kill"])
def test_a_run_of_the_same_order_begins_after_the_one_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, ends: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lake = Lake(str(tmp_path / "lake"))
    first = subprocess.Popen([sys.executable, "-c", HOLD, lake.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"holds\n"
        others = [("toys", {**ORDER, "limit": 6}), ("other", ORDER)]
        for suite, parameters in others:
            with in_turn(lake, suite, parameters, "two"):
                assert not caplog.records, "another order does not wait"
        with in_turn(lake, "toys", ORDER, "one"):
            assert not caplog.records, "a newer attempt of the run itself does not wait"
        told = logging.Handler()
        told.emit = lambda _: first.kill() if ends == "by a kill" else first.communicate(b"\n")  # type: ignore[method-assign, assignment]
        logger.addHandler(told)
        try:
            with in_turn(lake, "toys", ORDER, "two"):
                assert first.wait(10) == (-9 if ends == "by a kill" else 0)
        finally:
            logger.removeHandler(told)
        assert "run one of the same order is under way" in caplog.text


def test_a_run_of_the_same_order_is_told_where_machines_share_the_lake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(f"file://{tmp_path}/lake")
    save(lake, Run("one", "toys", "run", ORDER, {}, ["m"], [], 5, 5, datetime.now(UTC)))
    others = [("toys", ORDER, "one"), ("toys", {**ORDER, "limit": 6}, "two"), ("other", ORDER, "two")]
    for suite, parameters, run_id in others:
        warn_of_other_machines(lake, suite, parameters, run_id)
    assert capsys.readouterr().err == ""
    warn_of_other_machines(lake, "toys", {**ORDER, "note": "nightly"}, "two")
    assert "run one of the same order is under way" in capsys.readouterr().err
