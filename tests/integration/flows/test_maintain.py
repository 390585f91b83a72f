"""The flow `maintain`: tables, lost runs and what has expired; a dry run only says what would be done."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prefect.settings import PREFECT_LOCAL_STORAGE_PATH

from evalake.contracts.tables import RUNS
from evalake.core.errors import ConfigurationError
from evalake.flows.maintain import maintain
from evalake.suites.command_guard.contract import RESULTS
from tests.integration.flows.artifacts import newest_artifact
from tests.integration.flows.imported import Imported
from tests.integration.flows.lost import LONG_AGO, begin, states
from tests.integration.flows.workplace import Workplace

OLD = (datetime.now(UTC) - timedelta(days=40)).timestamp()


def test_the_maintain_flow_removes_old_reports_and_results_and_nothing_else(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.run(work.dataset(1))
    monkeypatch.setenv("EVALAKE_REPORTS", str(work.folder / "reports"))
    storage = Path(PREFECT_LOCAL_STORAGE_PATH.value())
    result, stranger = storage / ("a" * 64), storage / ("b" * 64)
    result.write_text(json.dumps({"metadata": {"expiration": "2026-01-01T00:00:00Z"}, "result": "3"}))
    stranger.write_text("somebody's own file")
    old, young = (work.folder / "reports" / name / "report.html" for name in ("old", "young"))
    notes = old.with_name("notes.txt")
    for file in (old, old.with_name("report.json"), notes, young):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("what a model was asked")
    for file in (old, result, stranger):
        os.utime(file, (OLD, OLD))
    policy = "[retention]\nreports_days = 30\nresults_days = 2\n"
    work.configuration.write_text(policy)

    maintain(lake=work.lake.uri, dry_run=True, configuration_file=str(work.configuration))
    assert (old.exists(), result.exists()) == (True, True)
    maintain(lake=work.lake.uri, configuration_file=str(work.configuration))

    assert (old.exists(), old.with_name("report.json").exists(), result.exists()) == (False, False, False)
    assert (notes.exists(), young.exists(), stranger.exists()) == (True, True, True)


def test_lost_runs_are_marked_unless_it_only_says_what_it_would_do(work: Workplace) -> None:
    begin(work, "lost", silent_since=LONG_AGO)
    maintain(work.lake.uri, dry_run=True)
    assert states(work) == {"lost": "running"}
    maintain(work.lake.uri)
    assert states(work) == {"lost": "failed"}


def test_every_table_is_maintained_and_shown_and_keeps_its_rows(imported: Imported) -> None:
    before = imported.lake.frame(RESULTS).collect()
    count = maintain(imported.lake.uri)
    description, rows = newest_artifact("maintenance")
    assert description == f"Maintenance of {imported.lake.uri}"
    assert count == len(rows)
    assert {row["table"] for row in rows} >= {"runs", "calls", RESULTS.table}
    assert imported.lake.frame(RESULTS).collect().sort("sample_id").equals(before.sort("sample_id"))
    maintain(imported.lake.uri, dry_run=True)
    assert newest_artifact("maintenance")[0].endswith(" (dry run: nothing was changed)")


def test_a_configuration_that_is_not_there_is_named_before_anything_is_done(imported: Imported) -> None:
    version = imported.lake.version(RUNS)
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml"):
        maintain(imported.lake.uri, configuration_file="nowhere.toml")
    assert imported.lake.version(RUNS) == version
