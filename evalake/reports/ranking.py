"""Rank bands: models whose paired difference in the quantity that ranks is not significant share one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any

import polars as pl

from evalake.metrics.compare import SIGNIFICANT_BELOW, Bounds, compare, holm
from evalake.metrics.compute import Metric

# Decide whether a value reaches a target, as far as its interval tells: PASS, FAIL, or UNDECIDED.


MOST_SAMPLES = 1_000_000
"""Nobody will take more, so that no number is named beyond."""


class Verdict(StrEnum):
    """What an interval says of a target."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict; where it is undecided, about how many more samples would settle it, None where nobody can say."""

    verdict: Verdict
    more_samples: int | None = None

    @property
    def text(self) -> str:
        """The verdict, and how many more samples it needs."""
        return self.verdict if self.more_samples is None else f"{self.verdict} +{self.more_samples:,}"


def decide(
    value: float, low: float | None, high: float | None, units: int, target: float, *, higher_is_better: bool = True
) -> Decision:
    """Decide by the interval: PASS where all of it reaches the target, FAIL where none does.

    The samples that are missing follow from the interval's end towards the target, which nears the value by the root of
    the number of units; they are about right where the value stays what it is.
    """
    if low is None or high is None:
        return Decision(Verdict.UNDECIDED)
    if low >= target if higher_is_better else high <= target:
        return Decision(Verdict.PASS)
    if high < target if higher_is_better else low > target:
        return Decision(Verdict.FAIL)
    reach, distance = (value - low if value > target else high - value), abs(value - target)
    more = units * ((reach / distance) ** 2 - 1) if distance else math.inf
    return Decision(Verdict.UNDECIDED, max(1, math.ceil(more)) if more <= MOST_SAMPLES else None)


# Missing items of one model: how many, why, and what they leave open.


@dataclass(frozen=True, slots=True)
class Missing:
    """What a run lacks of one model, as one judge would have seen it."""

    model: str
    judge: str | None
    items: int
    missing: int
    kinds: Mapping[str, int]
    bounds: Mapping[str, Bounds]
    """By headline metric, the lowest and the highest value that it can have once all is known."""

    @property
    def sentence(self) -> str:
        """How much is missing, why, and what that leaves open."""
        judged = "" if self.judge is None else f" by {self.judge}"
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.items())
        ends = ", ".join(f"{name} {low:.3g} to {high:.3g}" for name, (low, high) in self.bounds.items())
        leaves = f"; whatever they are: {ends}" if ends else ""
        return f"{self.model}{judged}: {self.missing:,} of {self.items:,} items are missing ({kinds}){leaves}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models on the samples that both answered: `difference` is first minus second, in the quantity that ranks.

    `p` is None where the metric has no test; the interval then tells whether the difference is significant.
    """

    first: str
    second: str
    units: int
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_adjusted: float | None


@dataclass(frozen=True, slots=True)
class Standing:
    """A model's place. Equal values share a rank; without a value there is neither rank nor band."""

    model: str
    value: float | None
    rank: int | None
    band: int | None


def compare_all(frame: pl.DataFrame, metric: Metric) -> dict[str | None, tuple[Comparison, ...]]:
    """Compare every pair of models in a metric over all samples; p values are adjusted over all pairs of one judge.

    Args:
        frame: Result rows with model, judge, sample_hash, cluster and what the metric reads.
        metric: The metric that ranks.
    """
    models = frame["model"].unique().sort().to_list()
    of_model = {model: frame.filter(pl.col("model") == model) for model in models}
    compared: dict[str | None, list[tuple[str, str, dict[str, Any]]]] = {}
    for first, second in combinations(models, 2):
        rows = compare(of_model[first], of_model[second], [metric], cluster="cluster", pair="sample_hash")
        for row in rows.filter(pl.col("slice") == "all").iter_rows(named=True):
            compared.setdefault(row["judge"], []).append((first, second, row))
    return {judge: _adjusted(compared[judge]) for judge in sorted(compared, key=lambda name: name or "")}


def stand(
    values: Mapping[str, float | None], compared: Sequence[Comparison], *, higher_is_better: bool = True
) -> tuple[Standing, ...]:
    """Order models by value, best first; those without one last, by name.

    A band's first model is its best; the next model down joins the band unless it is significantly worse than that one,
    in which case it opens the next. Models that share no samples cannot be told apart, and share a band.
    """
    worse = {pair for c in compared for pair in _significant(c, higher_is_better)}
    sign = -1.0 if higher_is_better else 1.0
    ranked = sorted(
        ((model, value) for model, value in values.items() if value is not None), key=lambda mv: (sign * mv[1], mv[0])
    )
    standings: list[Standing] = []
    leader, band = "", 0
    for place, (model, value) in enumerate(ranked, start=1):
        if not standings or (leader, model) in worse:
            leader, band = model, band + 1
        tied = bool(standings) and standings[-1].value == value
        standings.append(Standing(model, value, standings[-1].rank if tied else place, band))
    return (*standings, *(Standing(model, None, None, None) for model in sorted(values) if values[model] is None))


def _adjusted(rows: Sequence[tuple[str, str, dict[str, Any]]]) -> tuple[Comparison, ...]:
    adjusted = iter(holm([row["p"] for *_, row in rows if row["p"] is not None]))
    return tuple(
        Comparison(
            first=first,
            second=second,
            p_adjusted=None if row["p"] is None else next(adjusted),
            **{name: row[name] for name in ("units", "difference", "ci_low", "ci_high", "p")},
        )
        for first, second, row in rows
    )


def _significant(c: Comparison, higher_is_better: bool) -> list[tuple[str, str]]:
    """List the pair (better, worse) where the difference is significant."""
    if c.difference is None:
        return []
    if c.p_adjusted is not None:
        apart = c.p_adjusted < SIGNIFICANT_BELOW
    else:
        apart = c.ci_low is not None and c.ci_high is not None and (c.ci_low > 0 or c.ci_high < 0)
    better = (c.first, c.second) if (c.difference > 0) == higher_is_better else (c.second, c.first)
    return [better] if apart else []
