"""Suspicious replies, versions of judges, counts made again, and the look at the machine."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.admin.maintain import ask_again, suspicious
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, CORE_CONTRACTS, RUN_COVERAGE, RUN_ITEMS, RUNS, SNAPSHOTS, WITHDRAWN_CALLS
from evalake.contracts.tables.metrics import JUDGE_VERSIONS
from evalake.core.configuration import PROVIDER, Configuration
from evalake.core.errors import UsageError
from evalake.core.hashing import content_hash
from evalake.reports.coverage import NOT_ASKED
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import LedgerIndex
from evalake.storage.maintenance import maintain
from evalake.suites.registry import suite
from evalake.tasks.canary import RunPart, moves_between, version_warnings, versions_of
from evalake.tasks.coverage import coverage_of
from evalake.tasks.rescore import rescore
from evalake.tasks.runtime.context import RunContext
from tests.integration.storage.rows import call, key_of, run
from tests.integration.storage.sql.engine import answered

# Suspicious replies: which they are, and that a withdrawn one is asked again, lands once more and is replaced.

WITHOUT_USAGE = dict.fromkeys(("input_tokens", "output_tokens"))
SAYS_NOTHING: dict[str, dict[str, Any]] = {
    "empty": {"response": None},
    "empty-without-usage": {"response": "", **WITHOUT_USAGE},
    "tool-call": {"response": "", "finish_reason": "tool_calls"},
    "error-finish": {"response": "half a", "finish_reason": "error"},
}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        *((changes, kind) for kind, changes in SAYS_NOTHING.items()),
        ({"response": " \n"}, "empty"),
        ({"response": "", "finish_reason": None}, "empty"),
        ({"response": "", "finish_reason": "content_filter"}, None),
        ({"response": "", "finish_reason": "length"}, None),
        ({"response": "yes"}, None),
        ({"response": "", "origin": "import"}, None),
    ],
)
def test_a_reply_is_suspicious_by_what_it_says_and_how_it_ended(
    tmp_path: Path, changes: dict[str, Any], kind: str | None
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    ledger.append(lake, [call(1) | changes])
    found = suspicious(lake)
    assert found.rows() == ([] if kind is None else [("run", "provider/model", kind, 1)])


def test_a_withdrawn_reply_answers_no_longer_and_the_next_one_is_the_reply(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    key = key_of(call(1))
    ledger.append(lake, [call(1, response=""), call(2)])
    ledger.append(lake, [call(1, response="late")])  # lost a race, and is no reply to fall back to
    assert ask_again(lake, "empty", dry_run=True)["replies"].sum() == 1
    assert LedgerIndex.read(lake).fetch([key]), "a dry run changes nothing"
    assert ask_again(lake, "empty")["replies"].sum() == 1
    assert ask_again(lake, "empty").is_empty()
    assert suspicious(lake).is_empty()
    index = LedgerIndex.read(lake)
    assert (index.fetch([key]), index.next_revision(key)) == ({}, 1)
    assert key_of(call(2)) in index.fetch([key, key_of(call(2))])
    ledger.append(lake, [call(1, response="mended", revision=1)])
    ledger.append(lake, [call(1, response="mended later", revision=1)])
    assert LedgerIndex.read(lake).fetch([key])[key]["response"] == "mended"
    shown = answered(lake, CORE_CONTRACTS, "select response from replies order by all")
    assert shown["response"].to_list() == ["mended", "yes"]
    maintain(lake, [CALLS, WITHDRAWN_CALLS])
    assert sorted(lake.frame(CALLS).collect()["response"]) == ["", "mended", "yes"], "losers of races go, no revision"
    assert LedgerIndex.read(lake).fetch([key])[key]["response"] == "mended"


def test_only_what_was_named_is_withdrawn(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    ledger.append(lake, [call(n, run_id=run, response="") for n, run in enumerate("abb")])
    with pytest.raises(UsageError, match=r"choose one of error-finish, tool-call, empty"):
        ask_again(lake, "odd")
    assert ask_again(lake, "empty", "none").is_empty()
    assert ask_again(lake, "empty", model="another").is_empty()
    assert ask_again(lake, "empty", "b", "provider/model").rows() == [("b", "provider/model", "empty", 2)]
    assert suspicious(lake)["run_id"].to_list() == ["a"]


# Versions of judges: which one a judgement is of, what the reader of a run is told, and what is not compared.

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


# A run is scored again from the ledger alone.


def test_what_came_of_the_items_is_counted_again(audits: RunContext, tmp_path: Path) -> None:
    shutil.copytree(audits.lake.uri, tmp_path / "lake")
    lake = Lake(str(tmp_path / "lake"))
    before = lake.frame(RUN_COVERAGE).filter(run_id=audits.run_id).collect()
    stale = before.with_columns(answered=pl.lit(0, pl.Int64), missing="asked", left_out=pl.lit('{"repeated": 3}'))
    land(lake, RUN_COVERAGE, stale)
    rescore(lake, audits.run_id, Configuration())
    after = lake.frame(RUN_COVERAGE).filter(run_id=audits.run_id).collect().sort("model", "judge", "dataset")
    counts = ("model", "judge", "dataset", "asked", "answered", "missing", "lost_labels")
    assert after.select(counts).equals(before.sort("model", "judge", "dataset").select(counts))
    assert {*after["left_out"]} == {'{"repeated": 3}'}, "what is known of the sources is kept"


def test_items_that_a_cut_off_run_never_asked_are_missing(guard: RunContext, tmp_path: Path) -> None:
    shutil.copytree(guard.lake.uri, tmp_path / "lake")
    lake = Lake(str(tmp_path / "lake"))
    run = lake.frame(RUNS).filter(run_id=guard.run_id).collect()
    there = lake.frame(RUN_ITEMS).filter(run_id=guard.run_id).collect().height
    land(
        lake, RUNS, run.with_columns(origin=pl.lit("run"), state=pl.lit("failed"), items=pl.lit(there + 100, pl.Int64))
    )
    shutil.rmtree(tmp_path / "lake" / RUN_COVERAGE.table)  # which such a run has none of
    run_row = lake.frame(RUNS).filter(run_id=guard.run_id).collect().row(0, named=True)
    counted = coverage_of(lake, run_row)
    assert sum(row.asked for row in counted) == there + 100
    assert sum(row.missing_kinds.get(NOT_ASKED, 0) for row in counted) == 100
    done = rescore(lake, guard.run_id, Configuration())
    assert (done.items, done.unanswered) == (there + 100, 100)
    snapshot = lake.frame(SNAPSHOTS).filter(snapshot_id=done.snapshot_id).collect()
    assert "100 items are missing: the ledger has no reply to them" in snapshot["warnings"][0]
    assert coverage_of(lake, run_row) == counted, "as it is kept"
