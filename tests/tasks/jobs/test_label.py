"""Labels by people: drawn as a sheet, landed once, refused where they are of nothing that the lake has."""

import csv
import io
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.tables import HUMAN_LABELS
from core.errors import UsageError
from storage.lake import Lake
from tasks.jobs.label import import_labels, judges_and_people, label_sheet, suite_of
from tasks.runtime.context import RunContext


@pytest.fixture
def mine(audits: RunContext, tmp_path: Path) -> RunContext:
    shutil.copytree(audits.lake.uri, tmp_path / "lake")
    return replace(audits, lake=Lake(str(tmp_path / "lake")))


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
    for verdict in ("vulnerable", "vulnerable", "safe"):
        done = import_labels(mine.lake, mine.suite_name, filled(sheet, verdict=verdict), "csv", "ann")
        assert done.refused == []
    (row,) = mine.lake.frame(HUMAN_LABELS).collect().to_dicts()
    assert (row["annotator"], row["question"], row["answer"]) == ("ann", "verdict", "safe")
    assert row["sample_id"]


def test_what_there_is_not_is_named(mine: RunContext, guard: RunContext) -> None:
    assert suite_of(mine.lake, mine.run_id) == "solidity_audit"
    with pytest.raises(UsageError, match="has no run nothing"):
        suite_of(mine.lake, "nothing")
    with pytest.raises(UsageError, match="command_guard are not labelled through sheets"):
        label_sheet(mine.lake, guard.run_id, 2, "csv")
    with pytest.raises(UsageError, match="nobody has labelled a result of run"):
        judges_and_people(mine.lake, mine.run_id)
