"""What a report is made of: a run, its newest snapshot, and how its models compare."""

import pytest

from evalake.core.errors import UsageError
from evalake.storage.snapshots import find_snapshot
from evalake.tasks.report import build_report
from evalake.tasks.runtime.context import RunContext
from tests.integration.storage.recorded_lake import MODELS


def test_it_holds_the_newest_snapshot_and_every_pair_of_models(guard: RunContext) -> None:
    report = build_report(guard.lake, guard.run_id)
    assert report.run["run_id"] == guard.run_id
    assert report.snapshot == find_snapshot(guard.lake, run_id=guard.run_id)
    (compared,) = report.comparisons[None]
    assert {compared.first, compared.second} == set(MODELS)
    assert report.trivial


def test_a_run_that_there_is_not_is_named(guard: RunContext) -> None:
    with pytest.raises(UsageError, match="has no run nothing: `evalake runs` lists"):
        build_report(guard.lake, "nothing")
