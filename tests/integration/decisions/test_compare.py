"""Sides are found by name, and pairs of them by model."""

from pathlib import Path

import pytest

from evalake.contracts.tables import RUNS, SNAPSHOTS
from evalake.core.errors import UsageError
from evalake.decisions.compare import compare_sides
from evalake.decisions.sides import find_side, find_sides, measured_runs, pairs_of
from evalake.storage.lake import Lake
from evalake.tasks.runtime.context import RunContext
from tests.integration.storage.recorded_lake import MODELS
from tests.integration.storage.rows import day, measured


def test_a_run_has_all_of_its_models_and_a_name_behind_it_one(guard: RunContext) -> None:
    assert set(find_side(guard.lake, guard.run_id, None).models) == set(MODELS)
    assert find_side(guard.lake, f"{guard.run_id}:{MODELS[0]}", None).models == [MODELS[0]]


def test_a_run_against_itself_is_paired_model_by_model(guard: RunContext) -> None:
    side = find_side(guard.lake, guard.run_id, None)
    assert [(a.models, b.models) for a, b in pairs_of(side, side)] == [([model], [model]) for model in side.models]


def test_the_better_model_is_ahead_by_what_it_blocks_more(guard: RunContext) -> None:
    compared = compare_sides(guard.lake, *reversed(MODELS), run_id=guard.run_id, metric="malicious_detection_rate")
    whole = compared.rows.filter(slice="all").row(0, named=True)
    assert (whole["difference"], whole["units"], whole["flips_to_a"], whole["flips_to_b"]) == (0.5, 20, 10, 0)


def test_models_are_of_the_newest_run_with_a_tag(guard: RunContext) -> None:
    newest = find_side(guard.lake, guard.run_id, None)
    (pilot,) = measured_runs(guard.lake, "pilot")
    assert find_side(guard.lake, MODELS[0], None, "pilot").run["run_id"] == pilot != newest.run["run_id"]
    assert find_side(guard.lake, MODELS[0], guard.run_id, "pilot").run["run_id"] == guard.run_id
    with pytest.raises(UsageError, match="no measured run tagged night"):
        compare_sides(guard.lake, *MODELS, tag="night")


def test_models_without_a_run_are_of_the_newest_that_has_them_all(guard: RunContext) -> None:
    assert next(iter(measured_runs(guard.lake))) != guard.run_id  # which has judges' audits
    assert [side.run["run_id"] for side in find_sides(guard.lake, MODELS, None)] == [guard.run_id] * 2
    with pytest.raises(UsageError, match="nobody"):
        find_sides(guard.lake, ("nobody", MODELS[0]), None)


def test_a_snapshot_whose_run_is_gone_is_named(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    for number in (1, 2):
        measured(lake, f"run{number}", "bob", day(number), 0.5)
    snapshots = dict(lake.frame(SNAPSHOTS).select("run_id", "snapshot_id").collect().iter_rows())
    lake.ensure(RUNS).delete("run_id = 'run1'")
    assert find_side(lake, snapshots["run2"], None).run["run_id"] == "run2"
    with pytest.raises(UsageError, match="no longer has the run run1 of the snapshot"):
        find_side(lake, snapshots["run1"], None)


def test_what_there_is_not_is_named(guard: RunContext) -> None:
    with pytest.raises(UsageError, match="nobody"):
        find_side(guard.lake, "nobody", guard.run_id)
