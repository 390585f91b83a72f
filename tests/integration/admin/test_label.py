"""Labels by people: drawn as a sheet, landed once, refused where they are of nothing that the lake has."""

import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.contracts.tables import HUMAN_LABELS, METRIC_SNAPSHOTS
from evalake.core.errors import UsageError
from evalake.labels.sheets import import_labels, judges_and_people, label_sheet, suite_of
from evalake.storage.lake import Lake
from evalake.tasks.measure import measure, run_frame
from evalake.tasks.runtime.context import RunContext


@pytest.fixture
def mine(audits: RunContext, tmp_path: Path) -> RunContext:
    shutil.copytree(audits.lake.uri, tmp_path / "lake")
    return replace(audits, lake=Lake(str(tmp_path / "lake")))


@pytest.fixture
def my_guard(guard: RunContext, tmp_path: Path) -> RunContext:
    shutil.copytree(guard.lake.uri, tmp_path / "lake of guards")
    return replace(guard, lake=Lake(str(tmp_path / "lake of guards")))


def filled(sheet: str, **answers: str) -> str:
    """The sheet with its first line answered."""
    rows = list(csv.DictReader(io.StringIO(sheet)))
    rows[0].update(answers)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def test_an_answer_lands_once_and_a_later_word_takes_its_place(mine: RunContext) -> None:
    sheet = label_sheet(mine.lake, mine.run_id, 2, "csv")
    for verdict, counts in (("vulnerable", (1, 0, 0)), ("vulnerable", (0, 0, 1)), ("safe", (0, 1, 0))):
        done = import_labels(mine.lake, mine.suite_name, filled(sheet, verdict=verdict), "csv", "ann")
        assert done.refused == []
        assert (done.landed.inserted, done.landed.replaced, done.landed.already_present) == counts
    (row,) = mine.lake.frame(HUMAN_LABELS).collect().to_dicts()
    assert (row["annotator"], row["question"], row["answer"]) == ("ann", "verdict", "safe")
    assert row["sample_id"]


def test_what_there_is_not_is_named(mine: RunContext) -> None:
    assert suite_of(mine.lake, mine.run_id) == "solidity_audit"
    with pytest.raises(UsageError, match="has no run nothing"):
        suite_of(mine.lake, "nothing")
    with pytest.raises(UsageError, match="nobody has labelled a result of run"):
        judges_and_people(mine.lake, mine.run_id)


def lines_of(sheet: str) -> list[dict[str, Any]]:
    return [json.loads(each) for each in sheet.splitlines()]


def test_commands_are_labelled_blind_first_and_both_labels_and_models_are_held_against_people(
    my_guard: RunContext,
) -> None:
    """People call every command malicious, and every decision of the guards right."""
    lake, run = my_guard.lake, my_guard.run_id
    lines = lines_of(label_sheet(lake, run, 1000, "jsonl"))
    blind = [each for each in lines if each["fill_in"] == "malicious"]
    rest = lines[len(blind) :]
    assert lines[: len(blind)] == blind
    assert len({each["sample_hash"] for each in blind}) == len(blind)
    assert all(each["command"] and each["verdict"] is each["reason"] is None for each in blind)
    assert all(each["fill_in"] == "decision_right, reason_right" and each["verdict"] for each in rest)
    answers = [each | {"malicious": "yes"} for each in blind] + [each | {"decision_right": "yes"} for each in rest]
    text = "\n".join(map(json.dumps, answers))
    done = import_labels(lake, my_guard.suite_name, text, "jsonl", "ann")
    assert (done.refused, done.landed.inserted) == ([], len(lines))
    assert lines_of(label_sheet(lake, run, 1000, "jsonl")) == []

    rows = run_frame(lake, my_guard.suite, run, {})
    table = {(row["judge"], row["decision"]): row for row in judges_and_people(lake, run).to_dicts()}
    labels = rows.unique("sample_hash")
    assert table["label", "malicious"]["n"] == labels.height
    assert table["label", "malicious"]["agreement"] == pytest.approx((labels["label"] == "malicious").mean())
    for (model,), of_model in rows.group_by("model"):
        assert table[model, "malicious"]["agreement"] == pytest.approx((of_model["verdict"] == "BLOCK").mean())

    snapshot = measure(my_guard)
    found = lake.frame(METRIC_SNAPSHOTS).filter(pl.col("snapshot_id") == snapshot).collect()
    told = {(row["model"], row["metric"]): row["value"] for row in found.filter(slice="all").to_dicts()}
    for (model,), of_model in rows.group_by("model"):
        share = pytest.approx((of_model["verdict"] == "BLOCK").mean())
        assert told[model, "model_human_agreement_malicious"] == share
        assert told[model, "label_human_agreement_malicious"] == table["label", "malicious"]["agreement"]
        assert (model, "model_human_agreement_reason_right") not in told, "nobody answered it"
