"""The list of runs: headline values of earlier runs, folded reruns, filters and orders."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import RUN_COVERAGE, RUNS
from evalake.server.viewer.run_list import WantedRuns, run_page
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.snapshots import Snapshot, land_snapshot
from tests.integration.server.viewer.test_overview import TYPES, VALUE
from tests.integration.storage.rows import run

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
NIGHTLY = {"limit": 5, "tags": ["nightly"]}
# Run, its parameters, its calls, its value, its missing share
RUNS_OF = (
    ("first", NIGHTLY, 10, 0.5, 0.0),
    ("second", {**NIGHTLY, "estimate": {"calls": 3}}, 3, 0.7, 0.2),
    ("third", NIGHTLY, 0, 0.7, 0.0),
    ("fourth", NIGHTLY, 0, 0.7, 0.0),
    ("other", {"limit": 6}, 8, 0.9, 0.1),
    ("round 1", {"pooled": 40, "tags": ["settle-1"]}, 40, 0.6, 0.0),
    ("round 2", {"pooled": 60, "tags": ["settle-1"]}, 20, 0.6, 0.0),
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(str(tmp_path_factory.mktemp("listed") / "lake"))
    for number, (name, parameters, calls, value, missing) in enumerate(RUNS_OF):
        values = pl.DataFrame([{**VALUE, "metric": "balanced_accuracy", "value": value}], schema_overrides=TYPES)
        snapshot = land_snapshot(lake, Snapshot(name, "command_guard", {}, "0" * 64, "1", 1, {}, "1"), values)
        asked = {"parameters": json.dumps(parameters), "dataset_versions": '{"s": "1"}', "snapshot_id": snapshot}
        counts = {"calls_made": calls, "rows_landed": calls, "state": "completed"}
        row = {**run(name, "command_guard", BEGAN + timedelta(days=number)), **asked, **counts}
        land(lake, RUNS, conform([row], RUNS))
        told: dict[str, Any] = dict.fromkeys(("without_verdict_kinds", "missing_kinds", "left_out", "refused"), "{}")
        told |= {"run_id": name, "model": "m", "judge": "", "dataset": "s", "source_rows": 10, "lost_labels": []}
        counted = {"asked": 10, "answered": 10, "without_verdict": 0, "missing": round(10 * missing)}
        land(lake, RUN_COVERAGE, conform([told | counted], RUN_COVERAGE))
    return lake


def ids(lake: Lake, **wanted: Any) -> list[str]:
    return [each.run_id for each in run_page(lake, WantedRuns(**wanted)).runs]


def test_each_run_has_its_value_those_before_it_and_what_is_missing(lake: Lake) -> None:
    told = {each.run_id: each for each in run_page(lake, WantedRuns()).runs}
    second, other = told["second"].headline, told["other"].headline
    assert second is not None
    assert other is not None
    assert (second.value, second.earlier) == (0.7, [0.5])
    assert other.earlier == []
    assert {name: each.missing_share for name, each in told.items()} == {name: share for name, *_, share in RUNS_OF}


def test_reruns_that_asked_nothing_and_rounds_of_a_settle_are_folded_into_the_newest(lake: Lake) -> None:
    folded = run_page(lake, WantedRuns(reruns=False)).runs
    assert [(each.run_id, each.folded, each.rounds) for each in folded] == [
        *(("round 2", 0, 1), ("other", 0, 0), ("fourth", 1, 0)),
        *(("second", 0, 0), ("first", 0, 0)),
    ]
    assert ids(lake, tag="settle-1") == ["round 2", "round 1"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"sort": "oldest", "page_size": 5}, ["first", "second", "third", "fourth", "other"]),
        ({"filter": "Value > 0.6 and missing < 0.15"}, ["other", "fourth", "third"]),
        ({"model": "nobody"}, []),
        ({"sort": "value", "page_size": 2}, ["other", "fourth"]),
        ({"sort": "missing", "page_size": 1}, ["second"]),
        ({"sort": "calls", "page_size": 2, "page": 2}, ["first", "other"]),
        ({"q": "NIGHT"}, ["fourth", "third", "second", "first"]),
        ({"q": ".*"}, []),
        ({"tag": "nightly", "page_size": 1}, ["fourth"]),
        ({"state": "failed"}, []),
    ],
)
def test_runs_are_chosen_and_sorted(lake: Lake, wanted: dict[str, Any], expected: list[str]) -> None:
    assert ids(lake, **wanted) == expected
