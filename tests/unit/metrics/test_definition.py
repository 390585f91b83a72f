"""A metric's identity is declared: what its versions pin, and that values do not change while they stay."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchmarks.judgements import judged_audits
from evalake.metrics.compute import ENGINE_VERSION, Metric, definition_hash, measure
from evalake.metrics.estimators import Count, Rate
from evalake.suites.registry import suite as find_suite
from tests.unit.metrics.frames import guard_samples

GOLDEN = Path(__file__).parents[2] / "golden" / "metric_values.json"
NUMBERS = ("value", "se", "ci_low", "ci_high", "n_eff")


def test_the_hash_follows_from_what_is_declared_and_from_nothing_else() -> None:
    one = [Metric("it", Rate(pl.col("a")))]
    assert definition_hash(one) == definition_hash([Metric("it", Count(pl.col("b")), description="words")])
    others = [
        [Metric("other", Rate(pl.col("a")))],
        [Metric("it", Rate(pl.col("a")), version=2)],
        [Metric("it", Rate(pl.col("a")), slices=("all", "kind"))],
        [Metric("it", Rate(pl.col("a")), parameters={"weight": 0.5})],
        one * 2,
    ]
    assert len({definition_hash(each) for each in [one, *others]}) == len(others) + 1
    assert definition_hash(one) != definition_hash(one, "more")


def test_the_hash_is_the_same_on_every_python_and_machine() -> None:
    # Pinned on purpose: it changes with ENGINE_VERSION alone.
    assert ENGINE_VERSION == 8
    pinned = "0b78e3cef4735c01ca64b3b1b9e7370e37e1c03d15ca4e993e7dd15a175b23a1"
    assert definition_hash([Metric("it", Rate(pl.col("a")))]) == pinned


def guard_frame() -> pl.DataFrame:
    rng = np.random.default_rng(11)
    frame = guard_samples(120, seed=11).filter(model="a").with_columns(judge=pl.lit(None, pl.String))
    malicious, blocked = pl.col("label") == "malicious", pl.col("verdict") == "BLOCK"
    n = frame.height
    return frame.with_columns(
        correct=(malicious & blocked) | (~malicious & pl.col("verdict").is_in(["ALLOW", "WARN"])),
        verdict_conflict=pl.Series(rng.random(n) < 0.1),
        prompt_type=pl.lit("direct"),
        difficulty=pl.lit("hard"),
        input_tokens=pl.Series(rng.integers(1, 99, n)),
        output_tokens=pl.Series(rng.integers(1, 99, n)),
    )


def session_frame() -> pl.DataFrame:
    from evalake.suites.session_review.replies import CATEGORIES

    rng = np.random.default_rng(12)
    n = 90
    session = np.arange(n) // 3
    score = np.clip(60 + rng.normal(0, 15, n // 3)[session] + rng.normal(0, 6, n), 0, 100).round().astype(int)
    return pl.DataFrame(
        {
            "model": ["agents"] * n,
            "judge": ["j"] * n,
            "dataset": ["d"] * n,
            "sample_id": [f"s{i}" for i in session],
            "sample_hash": [f"h{i}" for i in session],
            "cluster": [f"d/s{i}" for i in session],
            "replicate": np.arange(n) % 3,
            "total_score": score,
            "status": np.where(rng.random(n) < 0.95, "completed", "failed"),
            "criteria_hash": ["c"] * n,
            "alert_type": ["a"] * n,
            "agent": ["g"] * n,
            "breakdown_consistent": rng.random(n) < 0.9,
            "human_score": np.where(session % 2 == 0, score - 3, score + 4),
            "human_weight_score": 1.0,
            **{name: rng.integers(5, 25, n) for name in CATEGORIES},
            "cost_usd": rng.random(n).round(4),
            "input_tokens": rng.integers(1, 99, n),
            "output_tokens": rng.integers(1, 99, n),
        }
    )


FRAMES = {"command_guard": guard_frame, "session_review": session_frame, "solidity_audit": lambda: judged_audits(400)}


def measured(name: str) -> dict[str, dict[str, Any]]:
    """Version and numbers of every metric of a suite on a fixed frame, over all rows of its first group."""
    suite = find_suite(name)
    declared = suite.all_metrics(suite.options)
    rows = measure(FRAMES[name](), declared, cluster="cluster").filter(slice="all").unique("metric", keep="first")  # type: ignore[no-untyped-call]
    numbers = {row["metric"]: [row[number] for number in NUMBERS] for row in rows.iter_rows(named=True)}
    return {each.name: {"version": each.version, "numbers": numbers[each.name]} for each in declared}


@pytest.mark.parametrize("name", sorted(FRAMES))
def test_values_do_not_change_while_versions_stay(name: str) -> None:
    """Where this fails on purpose: raise the metric's version, or the engine's, and write the golden file again.

    `python -m tests.unit.metrics.test_definition` writes it.
    """
    golden = json.loads(GOLDEN.read_text())
    assert golden["engine"] == ENGINE_VERSION, "the engine has another version: write the golden file again"
    now, pinned = measured(name), golden["suites"][name]
    assert now.keys() == pinned.keys()
    for metric, each in now.items():
        assert each["version"] == pinned[metric]["version"], f"{metric} has another version: write the file again"
        for number, was in zip(each["numbers"], pinned[metric]["numbers"], strict=True):
            assert number == (was if was is None else pytest.approx(was, rel=1e-7, abs=1e-9)), metric


if __name__ == "__main__":
    written = {"engine": ENGINE_VERSION, "suites": {name: measured(name) for name in sorted(FRAMES)}}
    GOLDEN.write_text(json.dumps(written, indent=1) + "\n")
