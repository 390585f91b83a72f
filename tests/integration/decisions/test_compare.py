"""Comparisons of two sides, of tools, and what explains a difference."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable

from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from evalake.core.errors import UsageError
from evalake.decisions.compare import Comparison, compare_sides
from evalake.decisions.explain import FIELDS, Explanation, explain
from evalake.decisions.sides import NotComparableError, find_side, find_sides, measured_runs, pairs_of
from evalake.lake import open_lake
from evalake.server.viewer.comparison import WantedPairs, pair_page
from evalake.server.viewer.run_index import RunIndexes
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from evalake.tasks.runtime.context import RunContext
from tests.integration.cli.command import evalake_here, recorded
from tests.integration.cli.people import judged
from tests.integration.storage.recorded_lake import MODELS
from tests.integration.storage.rows import day, measured
from tests.unit.suites.formats.logs import (
    archive,
    header,
    lm_eval_line,
    lm_eval_results,
    promptfoo_results,
    promptfoo_row,
    sample,
)

# Sides are found by name, and pairs of them by model.


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


# Runs of different tools are compared by what was asked, or else unpaired, and it is said which.

DOCS = range(10)


def line_of(number: int) -> str:
    text = f"Q: Question {number}\nA:"
    chat = json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}])
    line = json.loads(lm_eval_line(number, float(number < 3)))
    line["arguments"] = {"gen_args_0": {"arg_0": [chat], "arg_1": {"until": []}}}
    line["doc"] = {"question": f"Question {number}", "kind": "easy"}
    return json.dumps(line)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Questions 0 to 7 by Inspect, 0 to 9 by lm-eval in a template, 0 to 4 by promptfoo, and others."""
    folder = tmp_path_factory.mktemp("pairs")
    logged = [sample(n, "C" if n < 6 else "I") for n in range(7)]
    logged.append(sample("again", "I", input="Question  0"))
    logged.append(sample(7, scores=None, error={"message": "boom"}))
    (folder / "a.eval").write_bytes(archive(header("sums_a", eval_id="a", task_id="a"), logged))
    others = [sample(n, "C", input=f"Elsewhere {n}", events_data={"messages": [], "calls": []}) for n in range(3)]
    for each in others:
        each["messages"][0]["content"] = each["input"]
    (folder / "c.eval").write_bytes(archive(header("sums_c", eval_id="c", task_id="c"), others))
    lines = map(line_of, DOCS)
    (folder / "samples_sums_b_2026.jsonl").write_text("\n".join(lines))
    (folder / "results_2026.json").write_text(json.dumps(lm_eval_results("sums_b")))
    rows = [promptfoo_row(n, 0, n == 1) for n in range(5)]
    for n, row in enumerate(rows):
        row["prompt"]["raw"] = f"Q:  Question {n}\nA:"
    (folder / "p.json").write_text(json.dumps(promptfoo_results(rows)))
    found = {}
    for file in ("a.eval", "samples_sums_b_2026.jsonl", "c.eval", "p.json"):
        done = evalake_here("import", file, "--json", folder=folder)
        found[file[0] if file[0] != "s" else "b"] = json.loads(done.stdout)["run_id"]
    return folder, found


def compared(runs: tuple[Path, dict[str, str]], a: str, b: str, metric: str | None = None) -> Comparison:
    folder, named = runs
    return compare_sides(Lake(str(folder / "lake")), named[a], f"{named[b]}", metric=metric)


def whole(comparison: Comparison, metric: str = "accuracy") -> dict[str, Any]:
    return comparison.rows.filter(slice="all", metric=metric).row(0, named=True)


def test_tools_are_paired_by_what_they_asked_and_missing_answers_bound_the_difference(
    runs: tuple[Path, dict[str, str]],
) -> None:
    comparison = compared(runs, "a", "b")
    row, said = whole(comparison), "\n".join(comparison.remarks)
    # Of eight questions Inspect asked one twice, and got no answer to another
    assert (row["judge"], row["units"], row["value_a"]) == ("match | exact_match", 7, 6 / 8)
    assert row["value_b"] == 3 / 8
    assert "8 of 8 of" in said
    assert "8 of 10 of" in said
    assert "(column question)" in said
    assert "1 inputs stand in several samples of" in said
    assert "accuracy of sums_a by match with accuracy of sums_b by exact_match" in said
    assert row["missing_a"] == 1 / 9
    assert row["bound_low"] < row["difference"] < row["bound_high"]
    assert row["ci_low"] < row["bound_low"]
    assert row["ci_high"] > row["bound_high"]


def test_prompts_as_sent_pair_what_is_named_otherwise(runs: tuple[Path, dict[str, str]]) -> None:
    comparison = compared(runs, "p", "b")
    row = whole(comparison)
    assert (row["units"], row["value_a"], row["value_b"]) == (5, 0.2, 0.6)
    assert (row["flips_to_a"], row["flips_to_b"]) == (0, 2)
    assert "5 of 5 of" in comparison.remarks[-1]
    assert "5 of 10 of" in comparison.remarks[-1]


def test_tools_without_a_common_input_are_compared_unpaired(runs: tuple[Path, dict[str, str]]) -> None:
    comparison = compared(runs, "c", "b")
    row = whole(comparison)
    assert (row["value_a"], row["value_b"], row["p"], row["flips_to_a"]) == (1.0, 0.3, None, None)
    assert row["ci_low"] < 0.7 < row["ci_high"]
    assert "no input: compared unpaired" in comparison.remarks[-1]


def test_python_command_and_viewer_say_the_same(runs: tuple[Path, dict[str, str]]) -> None:
    folder, named = runs
    rows = compared(runs, "a", "b").rows
    assert open_lake(str(folder / "lake")).compare(named["a"], named["b"]).equals(rows)
    done = evalake_here("compare", named["a"], named["b"], "--json", folder=folder)
    assert pl.DataFrame(json.loads(done.stdout))["difference"].to_list() == rows["difference"].to_list()
    assert "paired by their input" in done.stderr
    table = evalake_here("compare", named["a"], named["b"], folder=folder).stdout
    assert "judge match | exact_match" in table
    page = pair_page(RunIndexes(Lake(str(folder / "lake"))), WantedPairs(a=named["a"], b=named["b"], kind="all"))
    assert page.answered == 8
    assert {pair.sample_id for pair in page.pairs} - {"0", "again"} == {*map(str, range(1, 8))}
    assert all(pair.item_id != pair.item_b for pair in page.pairs)


def test_what_two_suites_have_not_in_common_is_named(runs: tuple[Path, dict[str, str]]) -> None:
    with pytest.raises(UsageError, match="no metric f1 in common: choose accuracy or score"):
        compared(runs, "a", "b", "f1")
    folder, named = runs
    with pytest.raises(NotComparableError, match="labels correct neither"):
        compare_sides(Lake(str(folder / "lake")), named["a"], named["b"], corrected=True)


# Explaining a difference: parts sum up to it exactly, and each is where a lake was made to differ.

MODEL, OTHER = "openai/gpt-4o-mini", "ollama/llama3:8b"


def run_of(lake: Lake, name: str, lines: list[str], folder: Path) -> str:
    """Import lines; returns the run's id."""
    file = folder / f"{len(lines)}.jsonl"
    file.write_text("\n".join(lines))
    return import_recorded(lake, suite(name), [file])


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(str(tmp_path_factory.mktemp("explained") / "lake"))


@pytest.fixture(scope="module")
def explain_runs(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A model once on 40 commands, missing 4 of 20; then again on 45 others of which 5 are new, three times each.

    In its third repeats it misses six commands more.
    """
    folder = tmp_path_factory.mktemp("lines")
    once = [recorded(n, MODEL, "ALLOW" if n % 2 or n < 8 else "BLOCK") for n in range(40)]
    once += [recorded(n, OTHER, "ALLOW" if n % 2 or n < 20 else "BLOCK") for n in range(40)]
    often = [
        recorded(n, MODEL, "ALLOW" if n % 2 or n < (20 if repeat == 2 else 8) else "BLOCK", replicate=repeat)
        for n in range(6, 51)
        for repeat in range(3)
    ]
    return run_of(lake, "command_guard", once, folder), run_of(lake, "command_guard", often, folder)


def parts(explained: Explanation) -> dict[str, float]:
    """The contributions by part, after holding that they sum up to the difference."""
    rows = explained.parts
    assert list(rows.columns) == list(FIELDS)
    (difference,) = rows["difference"].unique()
    assert difference == pytest.approx(rows["value_a"][0] - rows["value_b"][0], abs=0)
    assert abs(sum(rows["contribution"]) - difference) <= 1e-12
    return dict(rows.select("part", "contribution").iter_rows())


@pytest.mark.parametrize("metric", ["balanced_accuracy", "malicious_detection_rate_macro", "latency_ms_p50"])
def test_samples_and_repeats_are_told_apart(lake: Lake, explain_runs: tuple[str, str], metric: str) -> None:
    explained = explain(lake, f"{explain_runs[0]}:{MODEL}", explain_runs[1], metric=metric)
    own = parts(explained)
    assert own["replies"] == own["judge"] == own["code"] == 0
    behind = explained.rows.group_by("part").agg(pl.col("sample_id").n_unique())
    assert dict(behind.iter_rows()) == {"samples": 6 + 11, "repeats": 34}
    if metric == "balanced_accuracy":
        # On the commands that both have, the first answers miss 1 of 17, the third repeats 7.
        assert own["repeats"] == pytest.approx((16 / 17 - (16 + 16 + 10) / 51) / 2)
        low, high = explained.parts.filter(pl.col("part") == "repeats").select("ci_low", "ci_high").row(0)
        assert low < own["repeats"] < high


def meaning_of_repeats(lake: Lake, folder: Path, missed: tuple[int, int]) -> str:
    """What explain says of two repeats of the same requests, of which the first and the second miss so many of 60."""
    asked = []
    for repeat, misses in enumerate(missed):
        said = ["ALLOW" if n < misses else "BLOCK" for n in range(60)]
        lines = [recorded(2 * n, MODEL, action, replicate=repeat) for n, action in enumerate(said)]
        asked.append(run_of(lake, "command_guard", lines, folder))
    explained = explain(lake, f"{asked[1]}:{MODEL}", f"{asked[0]}:{MODEL}", metric="accuracy")
    return str(explained.parts.filter(pl.col("part") == "repeats")["meaning"].item())


@pytest.mark.parametrize(
    ("missed", "said"), [((2, 30), "answers otherwise than before"), ((6, 8), "no more than noise shows")]
)
def test_repeats_that_differ_beyond_noise_are_no_noise(tmp_path: Path, missed: tuple[int, int], said: str) -> None:
    assert said in meaning_of_repeats(Lake(str(tmp_path / "lake")), tmp_path, missed)


def test_another_models_answers_are_replies(lake: Lake, explain_runs: tuple[str, str]) -> None:
    explained = explain(lake, f"{explain_runs[0]}:{MODEL}", f"{explain_runs[0]}:{OTHER}")
    assert parts(explained) == {"samples": 0, "replies": pytest.approx(0.15), "judge": 0, "code": 0, "repeats": 0}
    assert set(explained.rows["side"]) == {"a", "b"}


def test_what_the_rows_do_not_give_is_of_the_code(lake: Lake, explain_runs: tuple[str, str], tmp_path: Path) -> None:
    run = run_of(lake, "command_guard", [recorded(n, "m") for n in range(12)], tmp_path)
    before = parts(explain(lake, f"{explain_runs[0]}:{MODEL}", f"{run}:m"))
    kept = "model = 'm' AND metric = 'balanced_accuracy'"
    DeltaTable(lake.location(METRIC_SNAPSHOTS)).update(updates={"value": "value - 0.25"}, predicate=kept)
    after = parts(explain(lake, f"{explain_runs[0]}:{MODEL}", f"{run}:m"))
    assert before["code"] == 0
    assert after == pytest.approx({**before, "code": 0.25})


def test_another_judge_of_the_same_answers_is_the_judges_part(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lines = [json.loads(judged(n, "m", n < 6)) for n in range(10)]
    first = run_of(lake, "solidity_audit", [json.dumps(line) for line in lines], tmp_path)
    strict = [json.dumps(json.loads(judged(n, "m", n < 3)) | {"judge": "strict"}) for n in range(10)]
    second = run_of(lake, "solidity_audit", strict, tmp_path)
    explained = explain(lake, first, second, metric="target_detection_rate")
    own = parts(explained)
    assert set(explained.parts["judge"]) == {"judge | strict"}
    assert own["judge"] == pytest.approx(0.3)
    assert own["samples"] == own["replies"] == own["repeats"] == 0


def test_what_cannot_be_split_is_said(lake: Lake, explain_runs: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no metric charm"):
        explain(lake, *explain_runs, metric="charm")
    audits = run_of(lake, "solidity_audit", [judged(0, "m", found=True)], tmp_path)
    with pytest.raises(NotComparableError, match="to explain"):
        explain(lake, explain_runs[0], audits)
