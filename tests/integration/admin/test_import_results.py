"""Importing recorded results: what happens to lines that repeat or contradict an earlier one."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import QUARANTINE, RUN_COVERAGE, RUNS, SAMPLES
from evalake.storage.lake import Lake
from evalake.storage.snapshots import find_snapshot
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.command_guard.suite import SUITE
from evalake.suites.solidity_audit.suite import SUITE as AUDITS
from tests.integration.cli.people import judged


def recorded(**change: Any) -> dict[str, Any]:
    """A line of recorded results: a command that was blocked."""
    return {
        "suite": "command_guard",
        "sample_id": "a",
        "dataset": "d",
        "model": "m",
        "replicate": 0,
        "label": "malicious",
        "category": "shell",
        "command": "nc -e /bin/sh",
        "response": '{"action": "block"}',
        **change,
    }


def imported(lake: Lake, *files: Path) -> dict[str, Any]:
    """The run that an import of these files leaves."""
    run_id = import_recorded(lake, SUITE, files)
    return lake.frame(RUNS).filter(pl.col("run_id") == run_id).collect().row(0, named=True)


def written(file: Path, *lines: dict[str, Any]) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


def test_a_line_that_is_there_twice_is_one_row(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    first = written(tmp_path / "one" / "r.jsonl", recorded(), recorded(sample_id="b"), recorded())
    second = written(tmp_path / "two" / "r.jsonl", recorded())
    run = imported(lake, first, second)
    assert (run["rows_landed"], run["rows_already_present"], run["rows_quarantined"]) == (2, 2, 0)
    assert lake.frame(RESULTS).collect().height == 2


@pytest.mark.parametrize(
    ("others", "lost"),
    [([], ["malicious"]), ([recorded(sample_id="c", model="n")], ["malicious"]), ([recorded(sample_id="c")], [])],
    ids=["none", "of another model alone", "one"],
)
def test_a_label_of_which_every_line_was_refused_is_named(
    tmp_path: Path, others: list[dict[str, Any]], lost: list[str]
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    harmless = recorded(sample_id="b", label="harmless", category=None)
    run = imported(lake, written(tmp_path / "r.jsonl", recorded(replicate=-1), harmless, *others))
    rows = lake.frame(RUN_COVERAGE).filter(run_id=run["run_id"], model="m").collect()
    assert rows["lost_labels"].to_list() == [lost]
    assert run["state"] == "incomplete"


def test_the_label_in_a_ground_truth_is_named_too(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    safe = json.loads(judged(2, "m", found=False)) | {"ground_truth": {"is_vulnerable": False}, "replicate": -1}
    run_id = import_recorded(
        lake, AUDITS, [written(tmp_path / "r.jsonl", json.loads(judged(1, "m", found=True)), safe)]
    )
    rows = lake.frame(RUN_COVERAGE).filter(run_id=run_id).collect()
    assert rows["lost_labels"].explode().to_list() == ["safe"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"response": '{"action": "allow"}'}, "r.jsonl:1 has another result for the same item"),
        ({"latency_ms": 1.0}, "r.jsonl:1 has another result for the same item"),
        ({"model": "n", "label": "harmless", "category": None}, "r.jsonl:1 has another sample a of d"),
        ({"model": "n", "category": "upload"}, "r.jsonl:1 has another sample a of d"),
        ({"model": "n", "command": "ls"}, "r.jsonl:1 has another sample a of d"),
    ],
)
def test_a_line_that_contradicts_an_earlier_one_is_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    """The first stays, as it does in the ledger; the rest of the file goes on."""
    lake = Lake(str(tmp_path / "lake"))
    run = imported(lake, written(tmp_path / "r.jsonl", recorded(), recorded(**change), recorded(sample_id="b")))
    assert (run["rows_landed"], run["rows_already_present"], run["rows_quarantined"]) == (2, 0, 1)
    (refused,) = lake.frame(QUARANTINE).collect().to_dicts()
    assert refused["reason"] == f"r.jsonl:2: {reason}"
    assert lake.frame(RESULTS).collect()["verdict"].to_list() == ["BLOCK", "BLOCK"]
    assert lake.frame(SAMPLES).collect()["label"].to_list() == ["malicious", "malicious"]


def test_a_later_file_that_says_otherwise_is_overruled_and_that_is_said(tmp_path: Path) -> None:
    """The first reply of a key is the reply, in whichever run; nobody takes its metrics for those of the later file."""
    lake = Lake(str(tmp_path / "lake"))
    first = imported(lake, written(tmp_path / "a.jsonl", recorded(), recorded(sample_id="b")))
    later = [recorded(response='{"action": "allow"}'), recorded(sample_id="b"), recorded(sample_id="c")]
    second = imported(lake, written(tmp_path / "b.jsonl", *later))
    assert (second["rows_landed"], second["rows_already_present"]) == (1, 2)
    said = [find_snapshot(lake, run_id=run["run_id"])["warnings"] for run in (first, second)]
    assert said == [[], ["1 imported results differ from those the lake held of the same items, which stand"]]
    assert set(lake.frame(RESULTS).collect()["verdict"]) == {"BLOCK"}


def test_the_same_sample_id_in_two_datasets_is_two_samples(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    other = recorded(dataset="e", command="ls", label="harmless", category=None)
    assert imported(lake, written(tmp_path / "r.jsonl", recorded(), other))["rows_landed"] == 2


@pytest.mark.parametrize(
    ("digits", "reason"),
    [("3000000000", "replicate: the ledger counts to 2147483647"), ("1" * 5000, "not a JSON object")],
)
def test_a_number_that_nothing_can_hold_is_one_bad_line(tmp_path: Path, digits: str, reason: str) -> None:
    lake = Lake(str(tmp_path / "lake"))
    file = written(tmp_path / "r.jsonl", recorded())
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(recorded(sample_id="b")).replace('"replicate": 0', f'"replicate": {digits}') + "\n")
    run = imported(lake, file)
    assert (run["rows_landed"], run["rows_quarantined"]) == (1, 1)
    assert reason in lake.frame(QUARANTINE).collect()["reason"].item()
