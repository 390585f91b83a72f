"""Versions of judges: which one a judgement is of, what the reader of a run is told, and what is not compared."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import RUN_ITEMS, RUNS
from evalake.contracts.tables.metrics import JUDGE_VERSIONS
from evalake.core.configuration import PROVIDER
from evalake.core.errors import UsageError
from evalake.core.hashing import content_hash
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.registry import suite
from evalake.tasks.judge_versions import RunPart, moves_between, version_warnings, versions_of
from tests.integration.storage.rows import call, run

SUITE = suite("session_review")
HASH = "0" * 64
MOVED = datetime(2026, 11, 20, 7, tzinfo=UTC)


class Judged:
    """A lake with runs, of which each judged some sessions at some times."""

    def __init__(self, folder: Path) -> None:
        self.lake = Lake(str(folder / "lake"))
        self._number = 0

    def version(self, number: int, since: datetime, judge: str = "alice", canary: str = HASH) -> None:
        row = {"suite": SUITE.name, "judge": judge, "version": number, "canary_hash": canary, "since": since}
        more = {"day": since.date().isoformat(), "first_replicate": 1, "replicates": 5, "items": 8, "p_value": None}
        land(self.lake, JUDGE_VERSIONS, conform([row | more], JUDGE_VERSIONS))

    def run(self, run_id: str, *answered_on: int, judge: str = "alice", model: str = "agents") -> None:
        """A run whose judgements came on these days of November, each about a session of its own."""
        for day in answered_on:
            self._number += 1
            reply = {**call(self._number), "answered_at": datetime(2026, 11, day, 12, tzinfo=UTC)}
            ledger.append(self.lake, [reply])
            self.item(run_id, reply["prompt_hash"], judge, model)

    def item(self, run_id: str, prompt_hash: str, judge: str = "alice", model: str = "agents") -> None:
        names = {"suite": SUITE.name, "dataset": "d", "dataset_version": HASH, "sample_id": "s", "sample_hash": HASH}
        item = {"item_id": content_hash([run_id, prompt_hash, judge]), "prompt_type": "direct", "replicate": 0}
        row = {**names, **item, "run_id": run_id, "model": model, "judge": judge, "endpoint": PROVIDER}
        land(
            self.lake,
            RUN_ITEMS,
            conform([{**row, "prompt_hash": prompt_hash, "judge_hash": None, "judge_endpoint": None}], RUN_ITEMS),
        )
        land(self.lake, RUNS, conform([run(run_id, SUITE.name, MOVED)], RUNS))

    def told(self, run_id: str) -> list[str]:
        return list(version_warnings(self.lake, SUITE, run_id))


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    there = Judged(tmp_path)
    there.version(1, datetime(2026, 11, 10, tzinfo=UTC))
    there.version(2, MOVED)
    return there


def test_a_judgement_is_of_the_version_in_which_its_reply_came(judged: Judged) -> None:
    judged.run("across", 5, 19, 21, 22, 23)
    found = versions_of(judged.lake, SUITE, RunPart("across"))
    assert found.rows() == [("alice", 1, None, 2), ("alice", 2, MOVED, 3)]
    (warning,) = judged.told("across")
    assert "2 of version 1 and 3 of version 2" in warning


def test_what_is_before_the_first_canary_or_after_the_move_is_of_one_version(judged: Judged) -> None:
    judged.run("before", 1, 15)
    judged.run("after", 21)
    assert judged.told("before") == []
    (warning,) = judged.told("after")
    assert "version 2 since 2026-11-20" in warning


def test_a_run_that_the_ledger_answered_is_of_the_version_of_its_replies(judged: Judged) -> None:
    judged.run("old", 15)
    for row in judged.lake.frame(RUN_ITEMS).filter(pl.col("run_id") == "old").collect().iter_rows(named=True):
        judged.item("again", row["prompt_hash"])
    assert judged.told("again") == []
    assert moves_between(judged.lake, RunPart("old"), RunPart("again")) == []


def test_a_judge_that_moved_between_two_runs_is_named(judged: Judged) -> None:
    judged.run("before", 15)
    judged.run("after", 21)
    (said,) = moves_between(judged.lake, RunPart("before"), RunPart("after"))
    assert "alice moved between versions 1 and 2" in said


def test_a_judge_that_moved_between_two_models_of_one_run_is_named(judged: Judged) -> None:
    judged.run("run", 15, 16, model="first")
    judged.run("run", 21, model="second")
    assert moves_between(judged.lake, RunPart("run", "first"), RunPart("run", "first")) == []
    assert len(moves_between(judged.lake, RunPart("run", "first"), RunPart("run", "second"))) == 1


def test_another_judge_and_renewed_answers_of_a_version_are_no_move(judged: Judged) -> None:
    judged.version(1, datetime(2026, 11, 10, tzinfo=UTC), "bob")
    judged.version(1, datetime(2026, 11, 10, tzinfo=UTC), "bob", canary="1" * 64)
    judged.run("before", 15, judge="bob")
    judged.run("after", 21, judge="bob")
    assert moves_between(judged.lake, RunPart("before"), RunPart("after")) == []


def test_a_run_that_is_not_there_is_named(judged: Judged) -> None:
    with pytest.raises(UsageError, match="no run nobody"):
        moves_between(judged.lake, RunPart("nobody"))


def test_a_lake_without_canaries_compares(tmp_path: Path) -> None:
    there = Judged(tmp_path)
    there.run("one", 1)
    there.run("two", 20)
    assert there.told("one") == []
    assert moves_between(there.lake, RunPart("one"), RunPart("two")) == []
