"""Rows of later days: snapshots, ratings, rescores, roadmaps and changed trends."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.admin.import_results import import_recorded
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, METRIC_SNAPSHOTS, ROADMAP_MENTIONS, RUNS, SAMPLES, SNAPSHOTS
from evalake.core.errors import LakeError, ProviderError, UsageError
from evalake.flows.check import CheckError, check
from evalake.flows.evaluate import evaluate
from evalake.flows.judges import measure_roadmap, roadmap
from evalake.flows.snapshot import SnapshotError, rescore, snapshot
from evalake.server.viewer.item import item_contents
from evalake.server.viewer.run_index import RunIndexes
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.sql.query import query
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.registry import all_contracts, suite
from evalake.suites.session_review import prompts
from evalake.suites.session_review.contract import RESULTS as SCORES
from evalake.tasks.runtime import artifacts
from evalake.tasks.runtime.context import RunContext
from tests.integration.admin.roadmap.scored import absent, land_scores
from tests.integration.cli.command import recorded
from tests.integration.flows.artifacts import newest_artifact
from tests.integration.flows.imported import Imported
from tests.integration.flows.workplace import Workplace
from tests.integration.storage.foreign_snapshot import foreign_snapshot

# The flow `snapshot`: the newest run of every suite is measured again; one that cannot be does not keep others.


def snapshots(lake: Lake) -> dict[str, set[str]]:
    """The ids of all snapshots by suite."""
    rows = lake.frame(SNAPSHOTS).collect()
    return {suite: {*ids} for suite, ids in rows.group_by("suite").agg("snapshot_id").iter_rows()}


def test_what_has_not_changed_has_the_snapshot_that_it_had(imported: Imported) -> None:
    done = snapshot(lake=imported.lake.uri)
    before, values = snapshots(imported.lake), imported.lake.frame(METRIC_SNAPSHOTS).collect()
    assert [suite for suite, snapshot_id in done.items() if snapshot_id in before[suite]] == [
        "command_guard", "solidity_audit"
    ]  # fmt: skip
    assert snapshot(lake=imported.lake.uri) == done
    assert snapshots(imported.lake) == before
    assert imported.lake.frame(METRIC_SNAPSHOTS).collect().height == values.height
    description, rows = newest_artifact("snapshot-command-guard")
    assert description == (
        f"Headline metrics of command_guard with 95 % intervals, run {imported.guard}, "
        f"snapshot {done['command_guard'][:12]}. `evalake view` shows its pages."
    )
    assert rows[0]["model"] == "openai/gpt-4o-mini"


def test_runs_count_up_to_the_day(imported_once: Imported) -> None:
    begun = imported_once.lake.frame(RUNS).select(pl.col("started_at").min()).collect().item()
    assert snapshot(day=begun.date() - timedelta(days=1), lake=imported_once.lake.uri) == {}


def test_what_a_run_lacks_is_missing_from_its_later_snapshots_too(imported: Imported) -> None:
    run = imported.lake.frame(RUNS).filter(pl.col("run_id") == imported.guard).collect()
    told = {"state": "incomplete", "message": "2 items have no answer", "snapshot_id": "0" * 64}
    imported.lake.open(RUNS).delete()
    land(imported.lake, RUNS, run.with_columns(**{name: pl.lit(value) for name, value in told.items()}))
    snapshot_id = snapshot(lake=imported.lake.uri)["command_guard"]
    row = imported.lake.frame(SNAPSHOTS).filter(pl.col("snapshot_id") == snapshot_id).collect()
    assert any(told["message"] in warning for warning in row["warnings"].item())
    assert imported.lake.frame(RUNS).collect()["snapshot_id"].to_list() == [snapshot_id]


def test_a_suite_that_cannot_be_measured_is_named_and_the_others_are_measured(imported: Imported) -> None:
    imported.lake.open(SNAPSHOTS).delete()
    for file in imported.lake.open(RESULTS).file_uris():
        Path(file).unlink()
    with pytest.raises(SnapshotError, match="1 suites could not be measured: command_guard: No such file"):
        snapshot(lake=imported.lake.uri)
    assert snapshots(imported.lake).keys() == {"solidity_audit"}


# The flow `rescore`: rows and snapshot of a run from the ledger alone, and what it did as a table in the UI.


def test_a_run_is_derived_again_to_the_rows_that_it_has(imported: Imported) -> None:
    before = imported.lake.frame(RESULTS).collect()
    snapshot_id = rescore(imported.guard, lake=imported.lake.uri)
    assert imported.lake.frame(RESULTS).collect().equals(before)
    assert imported.lake.frame(RUNS).filter(run_id=imported.guard).collect()["snapshot_id"].to_list() == [snapshot_id]
    assert snapshot_id in {*imported.lake.frame(SNAPSHOTS).collect()["snapshot_id"]}
    description, (counts,) = newest_artifact(f"rescore-{imported.guard}")
    assert description == f"Snapshot {snapshot_id}"
    assert counts == {"items": 6, "unanswered": 0, "landed": 0, "already_present": 6, "quarantined": 0}


def test_a_run_that_there_is_not_or_that_the_ledger_knows_nothing_of_is_named(imported: Imported) -> None:
    with pytest.raises(UsageError, match="has no run nothing"):
        rescore("nothing", lake=imported.lake.uri)
    imported.lake.open(CALLS).delete()
    with pytest.raises(LakeError, match=imported.guard):
        rescore(imported.guard, lake=imported.lake.uri)


def test_sessions_that_were_scored_under_another_mark_are_found_and_scored_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a lake of a version that made marks otherwise: neither the viewer nor a rescoring can make them."""
    with monkeypatch.context() as older:
        older.setattr(RunContext, "fenced", lambda _, item: replace(item, fence="0123456789ab" * 2 + "01234567"))
        evaluate("session_review", first=2, lake=lake.uri)
    (run_id,) = lake.frame(RUNS).collect()["run_id"]
    index = RunIndexes(lake).of(run_id)
    for item in item_contents(lake, index, index.samples["sample_hash"].to_list()):
        assert [len(call.messages) for call in item.calls] == [2, 4]
        assert all("0123456789ab" in call.messages[1].content for call in item.calls)
        assert {fact.name: fact.value for fact in item.answers[0].values}["retest_std"].startswith("unknown: nothing")
    before, asked = lake.frame(SCORES).collect(), lake.frame(CALLS).collect().height
    lake.open(SCORES).delete()
    rescore(run_id, lake=lake.uri)
    assert newest_artifact(f"rescore-{run_id}")[1][0]["unanswered"] == 0
    assert lake.frame(SCORES).collect().sort("score_id").equals(before.sort("score_id"))
    evaluate("session_review", first=2, lake=lake.uri)
    assert lake.frame(CALLS).collect().height == 2 * asked, "a scoring under today's mark is another one"


def test_a_run_has_the_scores_under_its_own_criteria(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate("session_review", first=2, lake=lake.uri)
    monkeypatch.setattr(prompts, "PROMPT_VERSION", "of another second turn")
    evaluate("session_review", first=2, lake=lake.uri)
    run_ids = lake.frame(RUNS).sort("started_at").collect()["run_id"]
    rows = "select run_id, count(*), count(distinct criteria_hash) from session_review_run_results group by run_id"
    for _ in range(2):
        assert {*query(lake, all_contracts(), rows).rows()} == {(run_id, 2, 1) for run_id in run_ids}
        means = lake.frame(METRIC_SNAPSHOTS).filter(metric="score_mean", slice="all").collect()
        assert {*means["n"]} == {2}
        rescore(run_ids[0], lake=lake.uri)
    assert [RunIndexes(lake).of(run_id).answers.height for run_id in run_ids] == [2, 2]


# The flow `roadmap`: what results lack is ranked, and the same results give the roadmap that is there.


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def test_what_is_named_lands_once_and_is_ranked_in_the_ui(lake: Lake) -> None:
    land_scores(lake, ("a", 40, absent("x-ray")), ("b", 60, absent("y-scan")))
    made = roadmap(lake=lake.uri)
    mentions = lake.frame(ROADMAP_MENTIONS).collect()
    assert made == {"session_review": mentions["roadmap_id"].unique().item()}
    assert sorted(mentions["name"]) == ["x-ray", "y-scan"]
    description, rows = newest_artifact("roadmap-session-review")
    assert description == "Tool roadmap"
    ranked = [(row["rank"], row["theme"], row["points_lost"]) for row in rows]
    assert ranked == [(1, "x-ray", 60.0), (2, "y-scan", 40.0)]
    assert roadmap(suites=["session_review"], lake=lake.uri) == made
    assert lake.frame(ROADMAP_MENTIONS).collect().height == mentions.height


def test_who_cannot_group_and_what_cannot_be_grouped_is_named(lake: Lake) -> None:
    land_scores(lake, ("a", 40, absent("x-ray")))
    with pytest.raises(ProviderError, match="nowhere/judge"):
        roadmap(judge="nowhere/judge", lake=lake.uri)
    with pytest.raises(UsageError, match="command_guard has no roadmap: choose one of session_review"):
        roadmap(suites=["command_guard"], lake=lake.uri)
    assert lake.frame(ROADMAP_MENTIONS).collect().is_empty()


def test_grouping_is_measured_on_the_labelled_set(lake: Lake) -> None:
    measured = measure_roadmap("session_review", lake=lake.uri)
    assert {row["kind"] for row in measured} == {"absent", "failure"}
    assert all(0 <= row["adjusted_rand"] <= 1 for row in measured)
    with pytest.raises(UsageError, match="command_guard"):
        measure_roadmap("command_guard", lake=lake.uri)


# A run that shows that a metric left its beginning says so as an event, and no other run does.

EARLIER, LIKE_NOW = 16, 4
"""Nights before the first run: at a third of its value, then at its value."""


def test_the_run_that_shows_a_change_says_so(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(artifacts, "emit_event", lambda event, **more: told.append({"event": event, **more}))
    dataset = work.dataset(20)
    first = work.run(dataset)
    for contract in (METRIC_SNAPSHOTS, SNAPSHOTS, RUNS):
        rows = work.rows(contract).filter(run_id=first["run_id"])
        nights = [_night(rows, night) for night in range(EARLIER + LIKE_NOW)]
        land(work.lake, contract, conform(pl.concat(nights).to_dicts(), contract))
    assert told == []
    second = work.run(dataset)
    changed = [each for each in told if each["event"] == "evalake.trend.changed"]
    assert "malicious_detection_rate of hosted_vllm/guard is higher since" in changed[0]["payload"]["message"]
    assert {each["payload"]["message"].count("run night-16") for each in changed} == {1}
    assert second["run_id"] != first["run_id"]


def _night(rows: pl.DataFrame, night: int) -> pl.DataFrame:
    """The same rows as those of an earlier night."""
    before = timedelta(days=EARLIER + LIKE_NOW - night)
    times = [name for name in ("created_at", "started_at", "ended_at", "measured_at") if name in rows.columns]
    name = pl.lit(f"night-{night:02d}")
    rows = rows.with_columns(pl.col(times) - before, run_id=name, snapshot_id=name)
    if "row_key" not in rows.columns:
        return rows
    key, share = pl.col("row_key").str.slice(8) + f"{night:08d}", 1 if night >= EARLIER else 3
    return rows.with_columns(row_key=key, value=pl.col("value") / share)


# The flow `check`: completes, completes with a warning, or fails; its artifact says why.


def test_a_snapshot_that_was_not_recomputed_is_a_warning_of_a_completed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results.jsonl").write_text("\n".join(recorded(n) for n in range(6)))
    lake = Lake(str(tmp_path / "lake"))
    import_recorded(lake, suite("command_guard"), [tmp_path / "results.jsonl"])
    state = check(lake.uri, return_state=True)
    assert state.is_completed()
    assert "all in order" in (state.message or "")
    assert "warning" not in (state.message or "")

    foreign = foreign_snapshot(lake)
    state = check(lake.uri, return_state=True)
    assert state.is_completed()
    assert "warning: 1 snapshots could not be recomputed: it was made with other versions" in (state.message or "")
    description, (row,) = newest_artifact("check")
    assert "warning: 1 snapshots" in description
    assert foreign[:12] in row["mend"]

    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path / "reports"))
    monkeypatch.setenv("EVALAKE_REPORTS_URL", "https://reports.example/")
    check(lake.uri)
    (page,) = (tmp_path / "reports").glob("*/data-docs.html")
    assert newest_artifact("check")[0].endswith(
        f"; data docs: [{page.name}](https://reports.example/{page.parent.name}/{page.name})"
    )

    Path(lake.open(SAMPLES).file_uris()[0]).unlink()
    with pytest.raises(CheckError, match="data files are gone"):
        check(lake.uri)
