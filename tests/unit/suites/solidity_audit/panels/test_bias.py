"""Judge bias: the departure of a judge from the others, and what it goes with."""

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import pearsonr

from evalake.suites.solidity_audit.panels.rows import family, judge_bias
from tests.unit.suites.solidity_audit.support import finding, frame_of, judgement, line, target


def seen(found: bool, *classes: str) -> dict[str, Any]:
    findings = [finding(number, name) for number, name in enumerate(classes, 1)]
    return judgement(findings or ([finding()] if found else []), target(found))


def bias(frame: pl.DataFrame, metric: str) -> dict[str, tuple[float | None, int]]:
    """The metric's value and n by judge; every model has the same."""
    rows = judge_bias(frame).filter(metric=metric)
    by_judge = {judge: (value, n) for judge, value, n in rows.select("judge", "value", "n").iter_rows()}
    assert rows.select("judge", "value", "n").n_unique() == len(by_judge)
    return by_judge


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai/gpt-5.1", "OpenAI"),
        ("openai/o4-mini", "OpenAI"),
        ("openrouter/anthropic/claude-opus-4", "Anthropic"),
        ("gemini/gemini-3-pro", "Google"),
        ("hosted_vllm/Qwen3-32B", "Qwen"),
        ("ollama/llama3.3", "Meta"),
        ("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", "Anthropic"),
        ("bedrock/converse/us.meta.llama3-3-70b-instruct-v1:0", "Meta"),
        ("bedrock/eu.amazon.nova-pro-v1:0", "Amazon"),
        ("bedrock/us.deepseek.r1-v1:0", "DeepSeek"),
        ("bedrock/ai21.jamba-1-5-large-v1:0", None),
        ("baseline/overlap-judge", None),
        ("careful", None),
        ("openai/", None),
    ],
)
def test_the_family_follows_from_the_name(model: str, expected: str | None) -> None:
    assert family(model) == expected


def test_a_judge_that_favours_its_own_family_departs_for_it() -> None:
    words = {  # model -> judge -> whether each of four targets was found
        "openai/gpt-4o": {"openai/o3": "1111", "xai/grok-4": "1100", "gemini/gemini-3": "1100"},
        "anthropic/claude-4": {"openai/o3": "1100", "xai/grok-4": "1100", "gemini/gemini-3": "1100"},
    }
    lines = [
        line(n, judged=seen(word == "1"), judge=judge, model=model)
        for model, judges in words.items()
        for judge, row in judges.items()
        for n, word in enumerate(row)
    ]
    values = bias(frame_of(lines), "judge_bias_own_family")
    assert values["openai/o3"] == (pytest.approx(0.5), 8)
    assert "xai/grok-4" not in values  # it judges no model of its own family
    assert {*judge_bias(frame_of(lines))["model"]} == set(words)


def test_a_judge_that_believes_the_long_departs_with_length() -> None:
    rng = np.random.default_rng(5)
    tokens = rng.integers(50, 5000, 60)
    fair = rng.random((2, 60)) < 0.5
    fond = tokens > 1500
    lines = [
        line(n, judged=seen(bool(word)), judge=judge)
        for judge, row in (("a", fair[0]), ("b", fair[1]), ("fond", fond))
        for n, word in enumerate(row)
    ]
    lengths = pl.DataFrame({"sample_id": [f"s{n}" for n in range(60)], "output_tokens": tokens})
    frame = frame_of(lines).drop("output_tokens").join(lengths, on="sample_id", how="left")
    values = bias(frame, "judge_bias_verbosity")
    expected = pearsonr(fond - fair.mean(axis=0), np.log(tokens)).statistic
    assert values["fond"] == (pytest.approx(expected), 60)
    assert expected > 0.3 > abs(values["a"][0] or 1)


def test_a_judge_that_believes_the_first_finding_departs_for_it() -> None:
    valid, invalid = "BONUS_VALID", "HALLUCINATED"
    lines = []
    for n in range(6):
        lines.append(line(n, judged=seen(False, valid, invalid, invalid), judge="first"))
        lines.append(line(n, judged=seen(False, invalid, invalid, valid), judge="fair"))
    values = bias(frame_of(lines), "judge_bias_position")
    assert values["first"] == (pytest.approx(1.5), 18)
    assert values["fair"] == (pytest.approx(-1.5), 18)


def test_without_other_judges_there_is_nothing_to_depart_from() -> None:
    alone = frame_of([line(n, judged=seen(True)) for n in range(4)])
    assert judge_bias(alone).is_empty()
    failed = [line(n, judged=None, judge="b") for n in range(4)]
    assert judge_bias(frame_of([line(n, judged=seen(True), judge="a") for n in range(4)] + failed)).is_empty()


@pytest.mark.slow
def test_a_judge_without_bias_is_rarely_said_to_have_one() -> None:
    rng = np.random.default_rng(8)
    judges, families = ("openai/o3", "xai/grok-4", "mistral/mistral-large"), ("openai/gpt-4o", "anthropic/claude-4")
    rows = list(product(judges, families, range(40)))
    missed, found = (
        frame_of([line(n, judged=seen(word), judge=judge, model=model) for judge, model, n in rows])
        for word in (False, True)
    )
    outside = 0
    for _ in range(60):
        truth = rng.random((2, 40)) < 0.6
        words = np.tile(truth.ravel(), len(judges)) ^ (rng.random(len(rows)) < 0.15)
        frame = pl.concat([missed.filter(~words), found.filter(words)])
        biases = judge_bias(frame).filter(metric="judge_bias_own_family", judge="openai/o3")
        low, high = biases.select("ci_low", "ci_high").row(0)
        outside += not low <= 0 <= high
    assert outside <= 8  # of 60: 3 expected at 95 %
