"""What came of a run's items is counted from the lake, kept, and counted again for runs from before it was kept."""

import shutil
from pathlib import Path
from typing import Any

from evalake.admin.import_results import import_recorded
from evalake.admin.recorded_files import UNREADABLE
from evalake.contracts.tables import QUARANTINE, RUN_COVERAGE
from evalake.reports.coverage import Coverage, Tolerance
from evalake.sdk import Dataset, Sample, Skipped
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from evalake.tasks.coverage import Source, coverage_of, tolerance_of
from evalake.tasks.runtime.runs import run_row
from tests.integration.cli.command import recorded

GUARD = suite("command_guard")


def imported(folder: Path, *lines: str, tolerance: Tolerance = Tolerance()) -> tuple[Lake, dict[str, Any]]:  # noqa: B008
    """The lake and the row of a run of these recorded results."""
    (folder / "lines.jsonl").write_text("\n".join(lines))
    lake = Lake(str(folder / "lake"))
    run_id = import_recorded(lake, GUARD, [folder / "lines.jsonl"], tolerance=tolerance)
    return lake, run_row(lake, run_id)


def parrot(number: int, model: str) -> str:
    return recorded(number, model, response="I am just a parrot.")


def test_each_model_is_counted_by_kind(tmp_path: Path) -> None:
    lines = [recorded(n, "good") for n in range(10)]
    lines += [parrot(n, "mixed") if n < 3 else recorded(n, "mixed", None if n < 5 else "ALLOW") for n in range(10)]
    lake, run = imported(tmp_path, *lines)
    good, mixed = coverage_of(lake, run)
    assert good == Coverage("good", None, "mine", 10, 10)
    kinds = {"format_error": 3, "empty (nothing)": 2}
    assert mixed == Coverage("mixed", None, "mine", 10, 10, 5, without_verdict_kinds=kinds)
    assert run["state"] == "completed"
    assert "mixed: 3 of 10 (30.0 %) replies hold no verdict: 3 format_error" in run["message"]


def test_refused_lines_are_counted_by_the_model_that_they_name_and_end_an_import_incomplete(tmp_path: Path) -> None:
    bad = [recorded(n, "b", label="wicked") for n in (20, 21)]
    lines = [recorded(0, "a"), recorded(1, "a"), recorded(0, "a"), *bad, recorded(30, "a", colour="red"), "{not json"]
    lake, run = imported(tmp_path, *lines)
    assert (run["state"], run["rows_quarantined"]) == ("incomplete", 4)
    rows = {row.model: row for row in coverage_of(lake, run)}
    assert {model: (row.asked, row.refused) for model, row in rows.items()} == {
        "a": (2, {UNREADABLE: 1}),
        "b": (0, {UNREADABLE: 2}),
        "": (0, {UNREADABLE: 1}),
    }
    assert rows[""].left_out == {"repeated": 1}
    assert lake.frame(QUARANTINE).collect().height == 4


def test_a_run_from_before_it_was_kept_is_counted_when_it_is_looked_at(tmp_path: Path) -> None:
    lake, run = imported(tmp_path, *(recorded(n, "m", "ALLOW" if n % 2 else "BLOCK") for n in range(8)))
    kept = coverage_of(lake, run)
    shutil.rmtree(tmp_path / "lake" / RUN_COVERAGE.table)
    old = {**run, "parameters": "{}"}
    assert coverage_of(Lake(lake.uri), old) == kept == [Coverage("m", None, "mine", 8, 8)]
    assert tolerance_of(old) == Tolerance()
    assert coverage_of(lake, {**run, "state": "running"}) == []


def sample(number: int, label: str) -> Sample:
    return Sample("command_guard", "d", f"s{number}", f"command {number}", label=label)


def test_a_source_tells_what_a_rule_left_out_from_what_was_refused_and_which_label_it_lost() -> None:
    skipped = (
        Skipped("f:1", "duplicate"),
        Skipped("f:2", "malicious without category", "{}", "malicious"),
        Skipped("f:3", "not a JSON object", "{"),
    )
    source = Source.of(Dataset("d", (sample(1, "harmless"), sample(2, "harmless")), skipped))
    assert (source.rows, source.left_out) == (5, {"duplicate": 1})
    assert source.refused == {"malicious without category": 1, "not a JSON object": 1}
    assert source.lost_labels == {"malicious"}
    assert Source.of(Dataset("d", (sample(1, "malicious"),), skipped)).lost_labels == frozenset()
