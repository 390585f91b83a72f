"""Runs: their list, their overview, and a run whole."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest
from pydantic import BaseModel

from evalake.admin.import_results import import_recorded
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import RUN_COVERAGE, RUNS
from evalake.server.viewer.access import Answers
from evalake.server.viewer.overview import metric_history, metric_steps
from evalake.server.viewer.run import run_detail, run_opposed
from evalake.server.viewer.run_index import RunIndexes
from evalake.server.viewer.run_list import WantedRuns, run_page
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.snapshots import Snapshot, land_snapshot
from evalake.storage.sql.query import query
from evalake.suites.registry import all_contracts, suite
from evalake.tasks.runtime import runs
from tests.cases import cases_beside
from tests.integration.cli.command import recorded
from tests.integration.server.viewer.world import BAD, COMMANDS, GOOD, SILENT, World
from tests.integration.storage.recorded_lake import MODELS, SAMPLES, lake_of_nights, recorded_lake
from tests.integration.storage.rows import run

CASES = cases_beside(__file__, "wanted.json")

# The list of runs: headline values of earlier runs, folded reruns, filters and orders.

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
        of = {"metric": "balanced_accuracy", "value": value, "judge": "j" if name == "second" else None}
        values = pl.DataFrame([{**VALUE, **of}], schema_overrides=TYPES)
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
    headlines = {name: each.headline for name, each in told.items() if each.headline is not None}
    earlier = {name: headlines[name].earlier for name in ("second", "fourth", "other")}
    assert earlier == {"second": [], "fourth": [0.5, 0.7], "other": []}, "by the same judge"
    assert {name: each.missing_share for name, each in told.items()} == {name: share for name, *_, share in RUNS_OF}


def test_reruns_that_asked_nothing_and_rounds_of_a_settle_are_folded_into_the_newest(lake: Lake) -> None:
    folded = run_page(lake, WantedRuns(reruns=False)).runs
    assert [(each.run_id, each.folded, each.rounds) for each in folded] == [
        *(("round 2", 0, 1), ("other", 0, 0), ("fourth", 1, 0)),
        *(("second", 0, 0), ("first", 0, 0)),
    ]
    assert ids(lake, tag="settle-1") == ["round 2", "round 1"]


@pytest.mark.parametrize(("wanted", "expected"), CASES["chosen"])
def test_runs_are_chosen_and_sorted(lake: Lake, wanted: dict[str, Any], expected: list[str]) -> None:
    assert ids(lake, **wanted) == expected


# Metric values as the dashboard reads them: each with what tells whether it compares with another.

SUITE = "command_guard"
NAMED = {"model": "m", "judge": None, "slice": "all", "slice_value": "", "metric": "accuracy", "tier": None}
VALUE = {**NAMED, "value": 0.5, "n": 1, "units": 1, "n_eff": 1.0} | {
    **dict.fromkeys(("se", "ci_low", "ci_high")),
    "reliable": False,
}
TYPES = {"judge": pl.String, "tier": pl.Int64, **dict.fromkeys(("se", "ci_low", "ci_high"), pl.Float64)}


def test_each_value_has_the_datasets_of_its_run(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    chosen = ['r\u00e4t/"1"', "b"]
    of_runs = {
        "whole": ({"s": "1"}, {}),
        "first": ({"s": "2"}, {"limit": 5}),
        "two": ({"b": "3", "a": "4"}, {"samples": None}),
        "drawn": ({"s": "1"}, {"limit": 5, "draw": "stratified"}),
        "chosen": ({"s": "1"}, {"samples": chosen}),
    }
    began = datetime(2026, 11, 1, tzinfo=UTC)
    rows = [
        {**run(name, SUITE, began), "dataset_versions": json.dumps(of), "parameters": json.dumps(parameters)}
        for name, (of, parameters) in of_runs.items()
    ]
    land(lake, RUNS, conform(rows, RUNS))
    for name in (*of_runs, "not in the table"):
        values = pl.DataFrame([VALUE], schema_overrides=TYPES)
        land_snapshot(lake, Snapshot(name, SUITE, {}, "0" * 64, "1", 1, {}, "1"), values)
    points = metric_history(lake, SUITE, ["accuracy"], "all", None).points
    named = {"whole": "s", "first": "s (first 5)", "two": "a+b", "drawn": "s (5 drawn)", "not in the table": None}
    told = {point.run_id: point.datasets for point in points}
    assert (told.pop("chosen") or "").startswith("s (chosen ")
    assert told == named
    (one,) = metric_history(lake, SUITE, ["accuracy"], "all", "first").points
    assert one.datasets == "s (first 5)"
    views = "select run_id, datasets from metric_history"
    by_view = dict(query(lake, all_contracts(), views).iter_rows())
    assert by_view == {point.run_id: point.datasets or "unknown" for point in points}


def test_each_step_between_values_that_mean_the_same_has_its_paired_interval(tmp_path: Path) -> None:
    lake = lake_of_nights(tmp_path)
    history = metric_history(lake, SUITE, ["accuracy"], "all", None)
    first, second, third = history.points
    assert first.series == second.series != third.series
    assert (first.previous_id, second.previous_id, third.previous_id) == (None, first.snapshot_id, None)
    differing = {
        name for name, text in history.series[first.series].items() if text != history.series[third.series][name]
    }
    assert differing == {"datasets"}
    (moved,) = metric_steps(lake, SUITE, "accuracy", "all", MODELS[0], None)
    assert (moved.snapshot_id, moved.previous_id, moved.message) == (second.snapshot_id, first.snapshot_id, None)
    assert (moved.difference, moved.units) == (-5 / 40, 40)
    assert (moved.ci_low or 0) < -5 / 40 < (moved.ci_high or -1)
    assert metric_steps(lake, SUITE, "accuracy", "all", "nobody", None) == []
    of_prompts = metric_steps(lake, SUITE, "accuracy", "prompt_type", None, None)
    assert [(each.slice_value, each.difference) for each in of_prompts] == [("direct", -5 / 40)]


# One run: its headline with intervals, what it waited for and gave up on, and by what its items are chosen.


def test_a_run_tells_its_headline_with_intervals_and_its_choices(http: httpx.Client, world: World) -> None:
    run = http.get(f"/runs/{world.verdicts}").json()
    first = {value["model"]: value for value in run["values"] if value["metric"] == "balanced_accuracy"}

    assert (run["items"], run["answers"], run["answered"]) == (COMMANDS, 2 * COMMANDS, 2 * COMMANDS)
    assert first.keys() == {GOOD, BAD}
    assert first[GOOD]["ci_low"] < first[GOOD]["value"] < first[GOOD]["ci_high"]
    assert {choice["value"]: choice["count"] for choice in run["choices"]["model"]} == {GOOD: COMMANDS, BAD: COMMANDS}
    assert {choice["value"] for choice in run["choices"]["verdict"]} >= {"ALLOW", "BLOCK"}
    assert run["provenance"]["snapshot_id"] == run["run"]["snapshot_id"]


def test_a_run_tells_what_it_gave_up_on_and_how_often_it_tried(http: httpx.Client, world: World) -> None:
    run = http.get(f"/runs/{world.audits}").json()

    assert [(each["model"], each["kind"], each["count"]) for each in run["given_up"]] == [(SILENT, "rate_limit", 1)]
    assert sum(each["retried"] for each in run["waiting"]) == 3
    assert run["run"]["message"] == "one call was given up on"


def test_what_came_of_the_items_is_told_of_each_model_and_judge(http: httpx.Client, world: World) -> None:
    run = http.get(f"/runs/{world.verdicts}").json()
    of = {each["model"]: each for each in run["coverage"]}
    assert {model: (each["asked"], each["answered"]) for model, each in of.items()} == {
        GOOD: (COMMANDS, COMMANDS),
        BAD: (COMMANDS, COMMANDS),
    }
    assert run["coverage_table"]["headings"] == ["model", "source", "asked", "answered", "without verdict", "missing"]
    assert [row[0] for row in run["coverage_table"]["rows"]] == [*of]
    audits = http.get(f"/runs/{world.audits}").json()["coverage"]  # a run whose row of coverage was never kept
    assert {each["model"]: each["missing_kinds"] for each in audits if each["missing"]} == {SILENT: {"rate_limit": 1}}


def test_all_values_are_there_headline_first(http: httpx.Client, world: World) -> None:
    values = http.get(f"/runs/{world.verdicts}/values").json()

    assert (values[0]["metric"], values[0]["slice"]) == ("balanced_accuracy", "all")
    assert {value["metric"] for value in values} > {"malicious_detection_rate", "harmless_acceptance_rate"}
    by_prompt = [each for each in values if (each["slice"], each["metric"]) == ("prompt_type", "balanced_accuracy")]
    assert {(each["slice_value"], each["model"]) for each in by_prompt} == {("direct", GOOD), ("direct", BAD)}
    assert all(each["slice"] == "all" for each in http.get(f"/runs/{world.verdicts}").json()["values"])


def test_models_that_are_not_apart_share_a_letter(http: httpx.Client, world: World) -> None:
    letters = http.get(f"/runs/{world.verdicts}/letters").json()
    assert {each["model"]: (each["letters"], each["missing"]) for each in letters} == {
        GOOD: ("a", None),
        BAD: ("a", None),
    }
    opposed = http.get(f"/runs/{world.verdicts}/opposed").json()
    assert opposed == {"items": 0, "fewest_models": 8, "opposed": [], "disputed": []}  # nothing is said of two models


def test_an_item_with_a_wrong_label_is_listed_from_eight_models_on(tmp_path: Path) -> None:
    """Better models are right on more of the items, but for one, whose label is wrong."""
    lines = []
    for model in range(10):
        for n in range(30):
            right = (n * 7 + 3) % 30 < 3 * (model + 0.5)
            is_right = not model > 4 if n == 11 else right
            lines.append(recorded(n, f"m{model}", "BLOCK" if (n % 2 == 0) == is_right else "ALLOW"))
    (tmp_path / "lines.jsonl").write_text("\n".join(lines))
    lake = Lake(str(tmp_path / "lake"))
    run_id = import_recorded(lake, suite("command_guard"), [tmp_path / "lines.jsonl"])
    seen = run_opposed(RunIndexes(lake), run_id)
    assert [(each.sample_id, each.models) for each in seen.opposed] == [("s11", 10)]
    assert seen.opposed[0].ci_high < 0


def test_whether_answers_are_right_is_a_choice_where_the_suite_says_so(http: httpx.Client, world: World) -> None:
    choices = http.get(f"/runs/{world.verdicts}").json()["choices"]
    by_item = http.get(f"/runs/{world.verdicts}/items", params={"limit": 500}).json()["items"]
    wrong = sum(answer["correct"] is False for item in by_item for answer in item["answers"])

    assert {"value": "false", "count": wrong} in choices["correct"]


# Answers that are kept: made once for all readers, again after a change, and never while another thread makes one.


class Answer(BaseModel):
    number: int


def test_an_answer_is_made_again_once_where_its_state_changed_and_readers_do_not_wait() -> None:
    answers, made = Answers(), list[int]()
    begun, go_on = threading.Event(), threading.Event()

    def make(number: int, waits: bool = False) -> Answer:
        if waits:
            begun.set()
            go_on.wait()
        made.append(number)
        return Answer(number=number)

    assert [answers.answer("q", 1, lambda: make(1)).body for _ in range(2)] == [b'{"number":1}'] * 2
    with ThreadPoolExecutor(1) as pool:
        newer = pool.submit(answers.answer, "q", 2, lambda: make(2, waits=True))
        begun.wait()
        older = answers.answer("q", 2, lambda: make(3)).body
        go_on.set()
        assert newer.result().body == b'{"number":2}'
    assert older == b'{"number":1}'
    assert made == [1, 2]


# The index of a run is kept until a table that it follows from has moved.

GUARD = "command_guard"


def test_it_holds_every_sample_and_answer_and_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = recorded_lake(tmp_path)
    run = lake.frame(RUNS).filter(suite=GUARD).sort("started_at").collect()["run_id"][-1]
    indexes = RunIndexes(lake)
    index = indexes.of(run)
    assert (index.samples.height, index.answers.height) == (SAMPLES, SAMPLES * len(MODELS))
    assert index.answers.filter(correct=False).height == 10
    assert indexes.of(run).answers is index.answers
    lake.open(RUNS).update({"state": "'running'"})  # another version, with the same rows of the index
    assert indexes.of(run).answers.equals(index.answers)
    assert run_detail(indexes, run).run.state == "running"
    monkeypatch.setattr(runs, "LOST_AFTER", timedelta(0))
    assert run_detail(indexes, run).run.state == "lost"  # though no table has moved
