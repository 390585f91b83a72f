"""Runs of different tools are compared by what was asked, or else unpaired, and it is said which."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.core.errors import UsageError
from evalake.decisions.compare import Comparison, compare_sides
from evalake.decisions.sides import NotComparableError
from evalake.lake import open_lake
from evalake.server.viewer.comparison import WantedPairs, pair_page
from evalake.server.viewer.run_index import RunIndexes
from evalake.storage.lake import Lake
from tests.integration.cli.command import evalake_here
from tests.unit.suites.formats.logs import (
    archive,
    header,
    lm_eval_line,
    lm_eval_results,
    promptfoo_results,
    promptfoo_row,
    sample,
)

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
