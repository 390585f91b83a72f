"""The views: what they answer, on a lake with rows and on an empty one, and that they are documented."""

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import polars as pl
import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, CORE_CONTRACTS
from evalake.contracts.tables.metrics import JUDGE_VERSIONS
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import distinct_until
from evalake.storage.maintenance import maintain
from evalake.storage.snapshots import find_snapshot
from evalake.storage.sql.views import views
from evalake.suites.registry import all_contracts, suite
from evalake.tasks.runtime.runs import amended
from tests.integration.storage.recorded_lake import JUDGES, MODELS
from tests.integration.storage.rows import TOYS, call, day, measured, snapshot_of
from tests.integration.storage.sql.engine import answered

TABLES = all_contracts()
VIEWS = views(TABLES)


@pytest.fixture(scope="module")
def filled(recorded_runs: Lake) -> Lake:
    return recorded_runs


def ask(lake: Lake, sql: str) -> list[tuple[object, ...]]:
    return answered(lake, TABLES, sql).rows()


def test_an_empty_lake_has_every_view_with_the_columns_it_documents(lake: Lake) -> None:
    found = answered(lake, TABLES, "select table_name, column_name from duckdb_columns() where not internal")
    columns = found.group_by("table_name", maintain_order=True).agg("column_name")
    by_name = dict(columns.iter_rows())
    for view in VIEWS:
        assert by_name[view.name] == list(view.columns), view.name
    counts = " union all ".join(f"select count(*) as n from {view.name}" for view in VIEWS)
    assert answered(lake, TABLES, counts)["n"].to_list() == [0] * len(VIEWS)


def test_every_view_says_what_it_and_its_columns_are() -> None:
    names = [view.name for view in VIEWS]
    assert {"replies", "latest_metrics", "metric_history", "leaderboard", "cost_by_model_and_day", "disagreement",
            "quarantine_reasons", "run_results", "solidity_audit_run_results"} <= set(names)  # fmt: skip
    assert len(names) == len(set(names) | {contract.table for contract in TABLES}) - len(TABLES)
    for view in VIEWS:
        assert view.description.endswith(".")
        assert all(text.endswith(".") for text in view.columns.values()), view.name


def test_a_view_whose_tables_are_missing_is_left_out() -> None:
    assert views([TOYS]) == ()
    assert [view.name for view in views([*CORE_CONTRACTS, JUDGE_VERSIONS])] == [
        view.name for view in VIEWS if view.name not in ("answers", "disagreement") and "run_results" not in view.name
    ]


def test_each_file_has_statistics_of_what_views_filter_by() -> None:
    filtered = {
        "run_id",
        "landed_by_run",
        "suite",
        "model",
        "judge",
        "dataset",
        "sample_hash",
        "prompt_hash",
        "snapshot_id",
    }
    for contract in all_contracts():
        assert not filtered.intersection([*contract.column][32:]), contract.table  # Delta's default


def test_replies_shows_the_reply_of_each_key(lake: Lake) -> None:
    ledger.append(lake, [call(1, response="first")])
    ledger.append(lake, [call(1, response="second")])
    assert ask(lake, "select response from replies") == [("first",)]
    assert ask(lake, "select count(*) from calls") == [(2,)]


def test_replies_shows_the_reply_of_each_key_after_maintenance_too(lake: Lake) -> None:
    ledger.append(lake, [call(number, response="first") for number in range(4)])
    maintain(lake, [CALLS])
    assert distinct_until(lake.open(CALLS)) is not None
    version = lake.version(CALLS)
    maintain(lake, [CALLS])
    assert lake.version(CALLS) == version  # nothing has come since
    ledger.append(lake, [call(1, response="second"), call(2, response="again", revision=1), call(9, response="new")])
    replies = [(0, "first"), (1, "first"), (2, "again"), (3, "first"), (9, "new")]
    said = "select (request ->> '$.question')::int as question, response from replies order by question"
    assert ask(lake, said) == replies
    maintain(lake, [CALLS])
    ledger.append(lake, [call(9, response="later")])
    assert ask(lake, said) == replies


def test_a_run_has_all_its_rows_whichever_run_landed_them(filled: Lake) -> None:
    runs: dict[Any, Any] = dict(ask(filled, "select run_id, items from runs where suite = 'command_guard'"))  # type: ignore[arg-type]
    rows = "select run_id, count(*), count(*) filter (landed_by_run = run_id) from command_guard_run_results group by 1"
    assert {run: (total, landed) for run, total, landed in ask(filled, rows)} == {
        run: (items, 20 if items == 20 else 60) for run, items in runs.items()
    }
    assert sorted(runs.values()) == [20, 80]
    columns = answered(filled, TABLES, "from command_guard_run_results limit 0").columns
    assert columns == ["run_id", *suite("command_guard").results.column]


def test_a_panels_rows_belong_to_its_run_and_the_view_over_all_suites_has_them(filled: Lake) -> None:
    by_judge = "select judge, count(*) from {} where run_id in (select run_id from runs where suite = 'solidity_audit')"
    expected = [("alice", 12), ("bob", 12), ("panel:alice+bob", 12)]
    for view in ("solidity_audit_run_results", "run_results"):
        assert ask(filled, by_judge.format(view) + " group by judge order by judge") == expected
    whole = "select suite, count(*), count(judge) from run_results group by suite order by suite"
    assert ask(filled, whole) == [("command_guard", 100, 0), ("solidity_audit", 36, 36)]


def test_a_run_has_the_rows_of_the_scorer_that_it_was_measured_with(filled: Lake, tmp_path: Path) -> None:
    lake, results = Lake(str(copytree(filled.uri, tmp_path / "lake"))), suite("command_guard").results
    other = lake.frame(results).with_columns(scorer_version=pl.lit("of another evalake")).collect()
    land(lake, results, other)
    assert ask(lake, "select count(*) from command_guard_results") == [(160,)]
    assert ask(lake, "select count(*), max(scorer_version) from command_guard_run_results") == [(100, "1")]


def test_values_carry_their_run_and_its_time(filled: Lake) -> None:
    differ = "m.run_id is distinct from s.run_id or m.measured_at is distinct from s.created_at"
    assert ask(
        filled, f"select count(*) from metric_snapshots m join snapshots s using (snapshot_id) where {differ}"
    ) == [(0,)]


def test_latest_metrics_are_of_the_newest_snapshot_of_each_model(filled: Lake) -> None:
    at = "metric = 'accuracy' and slice = 'all' and suite = 'command_guard'"
    assert ask(filled, f"select model, value, n from metric_history where {at} order by all") == [
        (MODELS[1], 1.0, 40),
        (MODELS[0], 0.75, 20),
        (MODELS[0], 0.75, 40),
    ]
    assert ask(filled, f"select model, value, n from latest_metrics where {at} order by all") == [
        (MODELS[1], 1.0, 40),
        (MODELS[0], 0.75, 40),
    ]
    ((snapshots, rows, keys),) = ask(
        filled,
        "select max(snapshots), sum(n), sum(keys) from (select count(distinct snapshot_id) as snapshots, count(*) as n,"
        " count(distinct (slice, slice_value, metric)) as keys from latest_metrics group by suite, model, judge)",
    )
    assert snapshots == 1
    assert rows == keys


def test_a_retry_of_an_old_run_is_not_the_newest(lake: Lake) -> None:
    for run_id, when in (("new", day(2)), ("old", day(1))):  # the old one is measured last
        measured(lake, run_id, "j", when, 0.5 if run_id == "new" else 0.1)
    assert ask(lake, "select run_id, value from latest_metrics") == [("new", 0.5)]
    assert ask(lake, "select run_id, previous_value from metric_history order by run_started_at") == [
        ("old", None),
        ("new", 0.1),
    ]


def test_a_run_has_the_snapshot_that_it_was_measured_with_last_however_old(lake: Lake) -> None:
    measured(lake, "r", "j", day(1), 0.5)
    first = find_snapshot(lake)["snapshot_id"]
    snapshot_of(lake, "r", {"j": 0.1, "k": 0.2})
    amended(lake, "r", snapshot_id=first)
    assert find_snapshot(lake, run_id="r")["snapshot_id"] == first
    assert ask(lake, "select value from latest_metrics where judge = 'j'") == [(0.5,)]


def test_metric_history_does_not_join_other_data(filled: Lake) -> None:
    moved = ask(
        filled,
        "select n, previous_value, change from metric_history where metric = 'latency_ms_mean' and slice = 'all' "
        f"and model = '{MODELS[0]}' order by measured_at",
    )
    assert moved == [(20, None, None), (40, None, None)]


@pytest.mark.parametrize(
    ("parameters", "versions"),
    [
        ({}, '{"d": "2"}'),
        ({"prompt_types": ["chain_of_thought", "direct"]}, None),
        ({"replicates": 5}, None),
        ({"request_parameters": {"m": '{"seed":1}'}}, None),
        ({"request_parameters": {"j": '{"seed":1}'}}, None),
        ({"samples": ["other"]}, None),
    ],
)
def test_a_trend_joins_points_that_mean_the_same(
    lake: Lake, parameters: dict[str, object], versions: str | None
) -> None:
    usual = {"prompt_types": ["direct"], "replicates": 1, "request_parameters": {"other": "{}"}, "samples": ["s"]}
    for number in (1, 2, 3, 4):
        other = number == 3
        asked = {"parameters": json.dumps(usual | (parameters if other else {}), sort_keys=True)}
        data = {"dataset_versions": (versions if other else None) or '{"d": "1"}'}
        measured(lake, f"run{number}", "j", day(number), float(number), **asked, **data)
    history = ask(lake, "select value, change from metric_history order by measured_at")
    assert history == [(1.0, None), (2.0, 1.0), (3.0, None), (4.0, 2.0)]
    latest = ask(lake, "select value from latest_metrics order by value")
    assert latest == ([(4.0,)] if versions else [(3.0,), (4.0,)])  # another dataset version is superseded


def test_metric_history_does_not_compare_across_versions_of_a_judge(lake: Lake) -> None:
    moved = {"suite": "s", "judge": "bob", "version": 2, "canary_hash": "0" * 64, "since": day(2), "day": "2026-11-02"}
    row = {**moved, "first_replicate": 0, "replicates": 5, "items": 1, "p_value": 0.0}
    land(lake, JUDGE_VERSIONS, conform([row, {**row, "version": 1, "since": day(1)}], JUDGE_VERSIONS))
    for number in (1, 2, 3):
        for judge in ("alice", "bob", "panel:alice+bob", "panel:dawid_skene:alice+bob"):
            measured(lake, f"run{number}", judge, day(number), float(number))
    history = ask(lake, "select judge, judge_version, value, change from metric_history order by judge, measured_at")
    assert history == [
        ("alice", 1, 1.0, None),
        ("alice", 1, 2.0, 1.0),
        ("alice", 1, 3.0, 1.0),
        *((judge, version, value, change)
          for judge in ("bob", "panel:alice+bob", "panel:dawid_skene:alice+bob")
          for version, value, change in ((1, 1.0, None), (2, 2.0, None), (2, 3.0, 1.0))),
    ]  # fmt: skip


def test_the_leaderboard_ranks_models_by_each_metric(filled: Lake) -> None:
    board = ask(
        filled,
        "select place, model, value, overlaps_first from leaderboard where metric = 'balanced_accuracy' order by place",
    )
    assert [row[:3] for row in board] == [(1, MODELS[1], 1.0), (2, MODELS[0], 0.75)]
    assert board[0][3] is True
    assert board[1][3] is False


def test_cost_is_by_model_and_day_and_unknown_where_a_price_is(filled: Lake, lake: Lake) -> None:
    ((calls, tokens, cost),) = ask(
        filled, f"select calls, input_tokens, cost_usd from cost_by_model_and_day where model = '{MODELS[0]}'"
    )
    assert (calls, tokens) == (40, 40_000)
    assert cost == pytest.approx(40 * (1000 * 0.15 + 10 * 0.6) / 1e6)
    ledger.append(lake, [call(1), {**call(2), "cost_usd": None}, {**call(3), "model": "other"}])
    ledger.append(lake, [{**call(3, revision=1), "model": "other"}])  # which was asked again
    assert ask(lake, "select model, cost_usd, calls_without_price from cost_by_model_and_day order by model") == [
        ("other", 1.0, 0),
        ("provider/model", None, 1),
    ]


def test_the_day_is_that_of_utc_wherever_the_machine_is(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    ledger.append(lake, [call(1)])
    assert ask(lake, "select cast(day as varchar) from cost_by_model_and_day") == [("2026-01-01",)]


def test_disagreement_names_models_that_differ_on_a_sample(filled: Lake) -> None:
    found = answered(
        filled,
        TABLES,
        "select sample_id, first, first_says, second, second_says, distance from disagreement "
        "where \"between\" = 'models' and answer = 'verdict' order by sample_id",
    )
    assert set(found["sample_id"]) == {f"s{n}" for n in range(40) if n % 4 == 2}
    assert found.height == 10
    assert found.row(0)[1:] == (MODELS[1], "BLOCK", MODELS[0], "ALLOW", 1.0)


def test_disagreement_names_judges_that_differ_on_an_audit(filled: Lake) -> None:
    judges = f"first = '{JUDGES[0]}' and second = '{JUDGES[1]}'"
    found = ask(
        filled,
        "select sample_id, same, first_says, second_says from disagreement where \"between\" = 'judges' "
        f"and answer = 'target_found' and {judges} order by sample_id",
    )
    assert found == [(f"s{n}", "subject", "true", "false") for n in (0, 6, 9)]


def test_an_answer_on_a_scale_has_its_distance(filled: Lake) -> None:
    ((distance,),) = ask(
        filled, "select distinct distance from disagreement where answer = 'finding_precision' and second = 'bob'"
    )
    assert distance == 1.0
    assert ask(filled, "select distinct share from answers where answer = 'rcir'") == [(0.8,)]
    assert ask(filled, "select count(*) from answers where answer = 'origin'") == [(0,)]


def test_quarantine_reasons_count_rows_by_rule(filled: Lake) -> None:
    ((table, rule, refused, runs, example),) = ask(
        filled, "select table_name, rule, refused, runs, example from quarantine_reasons"
    )
    assert (table, rule, refused, runs) == ("command_guard_results", "recorded_line", 1, 1)
    assert "guard.jsonl:81" in str(example)
