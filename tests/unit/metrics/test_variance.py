"""Where values differ: between repeats, between samples, between judges of the same answers."""

import numpy as np
import polars as pl
import pytest

from evalake.metrics.variance import variance_components

VALUE = pl.col("score")


def results(rows: list[tuple[str, str | None, int, float]]) -> pl.DataFrame:
    frame = pl.DataFrame(
        rows,
        schema={"sample_hash": pl.String, "judge": pl.String, "replicate": pl.Int64, "score": pl.Float64},
        orient="row",
    )
    return frame.with_columns(model=pl.lit("m"), prompt_type=pl.lit("p"), cluster=pl.col("sample_hash"))


def values(frame: pl.DataFrame) -> dict[tuple[str | None, str], float | None]:
    rows = variance_components(frame.lazy(), VALUE).iter_rows(named=True)
    return {(row["judge"], row["metric"]): row["value"] for row in rows}


def test_repeats_and_samples_are_told_apart() -> None:
    scores = {"a": (0.2, 0.4), "b": (0.8, 1.0), "c": (0.5, 0.7)}
    got = values(results([(name, None, k, each[k]) for name, each in scores.items() for k in (0, 1)]))
    within = 0.02  # of two values that are 0.2 apart
    means = [0.3, 0.9, 0.6]
    assert got[None, "sd_replicate"] == pytest.approx(within**0.5)
    assert got[None, "sd_sample"] == pytest.approx((np.var(means, ddof=1) - within / 2) ** 0.5)


def test_a_judge_who_is_always_stricter_lies_apart_as_a_whole() -> None:
    scores, strict = {"a": 0.5, "b": 0.9, "c": 0.7}, {"j": 0.0, "k": 0.2}
    rows: list[tuple[str, str | None, int, float]]
    rows = [(name, judge, 0, score - less) for name, score in scores.items() for judge, less in strict.items()]
    got = values(results(rows))
    assert got == {("panel:j+k", "sd_judge"): pytest.approx((0.2**2 / 2) ** 0.5)}


def test_judges_who_say_the_same_lie_no_distance_apart() -> None:
    rows: list[tuple[str, str | None, int, float]]
    rows = [(name, judge, 0, score) for name, score in (("a", 0.5), ("b", 0.9)) for judge in ("j", "k")]
    assert values(results(rows)) == {("panel:j+k", "sd_judge"): 0.0}


def test_what_was_asked_and_judged_once_has_no_components() -> None:
    assert variance_components(results([("a", "j", 0, 0.5), ("b", "j", 0, 0.7)]).lazy(), VALUE).is_empty()
