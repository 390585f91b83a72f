"""Scores that decide nothing: in the results of no tool does a word, a null or nothing count as a verdict."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.metrics.limits import open_bounds
from evalake.sdk import Exchange
from evalake.suites.declared.formats.detect import read_tool_results
from evalake.suites.declared.imported import imported_suite, merge
from tests.unit.suites.formats.logs import (
    header,
    lm_eval_line,
    lm_eval_results,
    promptfoo_results,
    promptfoo_row,
    sample,
)

GONE = object()
"""In place of a score: the field is not there."""


def scored(name: str, value: Any) -> dict[str, Any]:
    return {} if value is GONE else {name: value}


def inspect(folder: Path, values: list[Any]) -> str:
    samples = [sample(n) | {"scores": {"match": scored("value", value)}} for n, value in enumerate(values)]
    return json.dumps({**header(), "samples": samples})


def lm_eval(folder: Path, values: list[Any]) -> str:
    (folder / "results_1.json").write_text(json.dumps(lm_eval_results("x")))
    lines = [json.loads(lm_eval_line(n, None)) for n in range(len(values))]
    for line, value in zip(lines, values, strict=True):
        del line["exact_match"]
        line |= scored("exact_match", value)
    return "\n".join(map(json.dumps, lines))


def promptfoo(folder: Path, values: list[Any]) -> str:
    rows = [promptfoo_row(n, 0, True) for n in range(len(values))]
    for row, value in zip(rows, values, strict=True):
        (part,) = row["gradingResult"]["componentResults"]
        for of, passed in ((row, "success"), (part, "pass")):
            del of["score"], of[passed]
            of |= scored("score", value) | scored(passed, value)
    return json.dumps(promptfoo_results(rows))


def mlflow(folder: Path, values: list[Any]) -> str:
    data = [[f"q{n}", "a", *([] if value is GONE else [value])] for n, value in enumerate(values)]
    return json.dumps({"columns": ["inputs", "outputs", "kind/v1/score"], "data": data})


def langfuse(folder: Path, values: list[Any]) -> str:
    of = [{"name": "kind", "dataType": "BOOLEAN", **scored("value", value)} for value in values]
    traces = [{"id": str(n), "name": "t", "input": f"q{n}", "output": "a", "scores": [s]} for n, s in enumerate(of)]
    return json.dumps(traces)


def openai_evals(folder: Path, values: list[Any]) -> str:
    spec = {"completion_fns": ["m"], "eval_name": "sums.dev", "base_eval": "sums", "run_id": "r"}
    lines: list[dict[str, Any]] = [{"spec": spec}]
    for n, value in enumerate(values):
        lines.append({"sample_id": str(n), "type": "sampling", "data": {"prompt": f"q{n}", "sampled": ["a"]}})
        lines.append({"sample_id": str(n), "type": "match", "data": scored("correct", value)})
    return "\n".join(map(json.dumps, lines))


def every_eval_ever(folder: Path, values: list[Any]) -> str:
    lines = [
        {
            **{"interaction_type": "single_turn", "model_id": "m", "evaluation_name": "e", "sample_id": str(n)},
            "evaluation": scored("score", value) | scored("is_correct", value),
            "answer_attribution": [],
            "input": {"raw": f"q{n}"},
            "output": {"raw": ["a"]},
        }
        for n, value in enumerate(values)
    ]
    return "\n".join(map(json.dumps, lines))


def table(folder: Path, values: list[Any]) -> str:
    rows = [{"input": f"q{n}", "reply": "a", **scored("score", value)} for n, value in enumerate(values)]
    return "\n".join(map(json.dumps, rows))


FORMS: dict[str, Callable[[Path, list[Any]], str]] = {
    "x.json": inspect,
    "samples_x_1.jsonl": lm_eval,
    "promptfoo.json": promptfoo,
    "eval_results_table.json": mlflow,
    "traces.json": langfuse,
    "log.jsonl": openai_evals,
    "instances.jsonl": every_eval_ever,
    "table.jsonl": table,
}


def missing(source: Path) -> dict[tuple[str, str], str | None]:
    """Why each row of an import is missing, by sample and scorer."""
    suite = imported_suite("x")
    assert suite.data.read_answers is not None
    answers, _ = merge(read_tool_results([source]))
    rows: list[Any] = []
    for _, each in suite.data.read_answers(answers):
        keys = zip(each.prompt_hashes, each.replies, strict=True)
        (of_table,) = suite.scoring.score(
            each.item, [Exchange(key, reply, from_ledger=False) for key, reply in keys], {}
        ).values()
        rows += of_table
    found = pl.DataFrame(rows, schema_overrides={"correct": pl.Boolean, "score": pl.Float64, "error_kind": pl.String})
    why = found.with_columns(why=suite.scoring.outcomes.missing)
    assert why.filter(
        pl.col("why").is_not_null(), pl.any_horizontal(pl.col("correct", "score").is_not_null())
    ).is_empty()
    return {(sample_id, judge): reason for sample_id, judge, reason in why.select("sample_id", "judge", "why").rows()}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("value", ["maybe", None, GONE], ids=["word", "null", "nothing"])
def test_it_counts_as_missing_in_the_results_of_each_tool(tmp_path: Path, name: str, value: Any) -> None:
    source = tmp_path / name
    first = None if name == "table.jsonl" and value is GONE else value  # a table names its columns
    source.write_text(FORMS[name](tmp_path, [first, value]))
    assert None not in (found := missing(source)).values(), found
    source.write_text(FORMS[name](tmp_path, [True, value]))
    second = missing(source)
    assert [*second.values()].count(None) * 2 == len(second) > 0, second
    assert len({sample_id for sample_id, _ in second}) == 2


def test_an_answer_without_a_verdict_bounds_the_accuracy() -> None:
    rows = pl.DataFrame({"model": "m", "judge": "j", "cluster": ["a", "b"], "correct": [True, None]})
    accuracy = replace(imported_suite("x").metrics.own({})[0], slices=("all",))
    assert open_bounds(rows, accuracy, (0, rows[1:])) == (0.5, 1.0)


def test_words_beside_a_scorer_that_decides_are_categories(tmp_path: Path) -> None:
    rows = ["q0,r,mark,1", "q0,r,tone,warm", "q1,r,mark,0", "q1,r,tone,cold"]
    (tmp_path / "t.csv").write_text("\n".join(["input,reply,scorer,score", *rows]))
    assert {*missing(tmp_path / "t.csv").values()} == {None}


def test_a_scorer_that_says_nothing_of_a_sample_of_inspect_leaves_it_unscored(tmp_path: Path) -> None:
    one = sample(1) | {"scores": {"match": {"value": "C"}, "other": {"value": {"a": 1, "b": 0}}}}
    top = header(scorers=[{"name": "match"}, {"name": "mine/other"}])
    (tmp_path / "x.json").write_text(json.dumps({**top, "samples": [one, sample(2)]}))
    assert missing(tmp_path / "x.json") == {
        **{("1", scorer): None for scorer in ("match", "other.a", "other.b")},
        ("2", "match"): None,
        ("2", "other"): "unscored",
    }
