"""What a run leaves in Prefect: its headline, and where its reports lie."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evalake.storage.snapshots import find_snapshot
from evalake.tasks.runtime.artifacts import _report, _summary, headline, pages_of, reports_folder
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.runs import Run
from tests.integration.storage.recorded_lake import JUDGES, MODELS


def test_the_headline_has_a_row_a_model_with_what_the_suite_ranks_by(guard: RunContext) -> None:
    rows = headline(guard, find_snapshot(guard.lake, run_id=guard.run_id)["snapshot_id"])
    assert [list(row) for row in rows] == [["model", *guard.suite.metrics.headline]] * 2
    detection = {row["model"]: row["malicious_detection_rate"] for row in rows}
    assert detection == {MODELS[0]: "50.0%* [29.9–70.1], n = 20", MODELS[1]: "100.0%* [83.9–100.0], n = 20"}


def test_it_links_to_the_pages_where_their_address_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALAKE_VIEWER_URL", raising=False)
    assert pages_of("r") == "`evalake view` shows its pages."
    monkeypatch.setenv("EVALAKE_VIEWER_URL", "http://127.0.0.1:8601/")
    assert pages_of("r") == "[Its pages](http://127.0.0.1:8601/runs/r)"


def test_a_judge_has_a_row_of_its_own(audits: RunContext) -> None:
    rows = headline(audits, find_snapshot(audits.lake, run_id=audits.run_id)["snapshot_id"])
    assert set(JUDGES) <= {row["judge"] for row in rows}


def test_reports_lie_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path))
    assert reports_folder() == tmp_path
    monkeypatch.delenv("EVALAKE_REPORTS")
    monkeypatch.chdir(tmp_path)
    assert reports_folder().parent == tmp_path


def test_a_run_is_complete_though_its_page_cannot_be_written(
    guard: RunContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path / "file"))  # below a file nothing can be made, by root neither
    snapshot_id = find_snapshot(guard.lake, run_id=guard.run_id)["snapshot_id"]
    run = Run(guard.run_id, "command_guard", "run", {}, {}, [], [], 1, 1, datetime.now(UTC), snapshot_id=snapshot_id)
    assert _report(guard, run) == f"`evalake report {guard.run_id}` writes it"
    assert f"cannot write the report to {tmp_path}/file" in caplog.text


def test_what_a_provider_says_is_no_markup_of_the_summary() -> None:
    run = Run(
        run_id="r",
        suite="command_guard",
        origin="evaluate",
        parameters={},
        dataset_versions={},
        models=["openai/m | ![](http://evil.example/1)"],
        judges=[],
        samples=1,
        items=1,
        started_at=datetime.now(UTC),
        message="1 server (<img src=http://evil.example/2>\n\n![](http://evil.example/3) [log](javascript:x))",
    )
    lines = [line for line in _summary(run, "none").splitlines() if "evil.example" in line]
    assert len(lines) == 2
    cell = lines[0].removeprefix("| models | ").removesuffix(" |")
    assert [re.findall(r"(?<!\\)[\[\]<>!|]", each) for each in (cell, lines[1])] == [[], []]
