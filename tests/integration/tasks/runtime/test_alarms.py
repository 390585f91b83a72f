"""What people are to hear of a run is told as an event, the same one however often it is told."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalake.core.configuration import Configuration
from evalake.storage.lake import Lake
from evalake.tasks.runtime import artifacts, runs
from evalake.tasks.runtime.artifacts import emit_run_alarms
from evalake.tasks.runtime.runs import Run, Tally


def test_refused_rows_and_a_day_above_its_limit_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(artifacts, "emit_event", lambda event, **more: told.append({"event": event, **more}))
    lake = Lake(str(tmp_path / "lake"))
    for name, tally in (("clean", Tally(cost_usd=0.5)), ("dirty", Tally(cost_usd=2.0, rows_quarantined=3))):
        run = Run(name, "quiz", "import", {}, {}, ["a/model"], [], 1, 1, datetime.now(UTC))
        runs.save(lake, run.ended("completed", tally=tally))
    limited = Configuration.model_validate({"alarms": {"cost_usd_a_day": 2.0}})
    emit_run_alarms(lake, Configuration(), "clean")
    assert told == []
    for _ in range(2):
        emit_run_alarms(lake, limited, "dirty")
    refused, cost, *again = told
    assert refused["payload"]["message"] == "run dirty refused 3 rows"
    assert "have cost 2.50 US dollars, above 2" in cost["payload"]["message"]
    assert [each["id"] for each in again] == [refused["id"], cost["id"]]
