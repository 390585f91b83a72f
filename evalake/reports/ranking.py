"""Ranking: letters that tell which models are apart, from all paired differences in the quantity that ranks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from statistics import NormalDist
from string import ascii_letters
from typing import Any

import polars as pl

from evalake.metrics.agreement import BY_DAWID_SKENE
from evalake.metrics.compare import DRAWS, SIGNIFICANT_BELOW, Bounds, compare, holm
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


def as_judged(decision: Decision, judge: str | None) -> Decision:
    """Withhold a PASS by a consensus of Dawid and Skene, which may have exchanged right and wrong."""
    withheld = decision.verdict is Verdict.PASS and judge is not None and judge.startswith(BY_DAWID_SKENE)
    return Decision(Verdict.UNDECIDED) if withheld else decision


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


DRAWS_PER_PAIR = 40
"""Random exchanges for each pair of a family, without which Holm's adjustment leaves the smallest p value too large."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models on the samples that both answered: `difference` is first minus second, in the quantity that ranks.

    `p` is None where the metric has no test; `p_adjusted`, by Holm over all pairs of the judge, is then of the p value
    that the interval implies.
    """

    first: str
    second: str
    units: int
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_adjusted: float | None

    @property
    def apart(self) -> bool:
        """Whether the difference is significant in the family of all pairs."""
        return self.p_adjusted is not None and self.p_adjusted < SIGNIFICANT_BELOW


@dataclass(frozen=True, slots=True)
class Standing:
    """A model's place. Equal values share a rank; without a value there is neither rank nor letter."""

    model: str
    value: float | None
    rank: int | None
    letters: str | None
    """Models that share a letter are not significantly apart; models without a common one are."""


def compare_all(frame: pl.DataFrame, metric: Metric) -> dict[str | None, tuple[Comparison, ...]]:
    """Compare every pair of models in a metric over all samples; p values are adjusted over all pairs of one judge.

    Args:
        frame: Result rows with model, judge, sample_hash, cluster and what the metric reads.
        metric: The metric that ranks.
    """
    models = frame["model"].unique().sort().to_list()
    of_model = {model: frame.filter(pl.col("model") == model) for model in models}
    compared: dict[str | None, list[tuple[str, str, dict[str, Any]]]] = {}
    draws = max(DRAWS, DRAWS_PER_PAIR * math.comb(len(models), 2))
    for first, second in combinations(models, 2):
        rows = compare(of_model[first], of_model[second], [metric], cluster="cluster", pair="sample_hash", draws=draws)
        for row in rows.filter(pl.col("slice") == "all").iter_rows(named=True):
            compared.setdefault(row["judge"], []).append((first, second, row))
    return {judge: _adjusted(compared[judge]) for judge in sorted(compared, key=lambda name: name or "")}


def stand(
    values: Mapping[str, float | None], compared: Sequence[Comparison], *, higher_is_better: bool = True
) -> tuple[Standing, ...]:
    """Order models by value, best first; those without one last, by name.

    Models that share no samples cannot be told apart, and share a letter.
    """
    sign = -1.0 if higher_is_better else 1.0
    ranked = sorted(
        ((model, value) for model, value in values.items() if value is not None), key=lambda mv: (sign * mv[1], mv[0])
    )
    apart = {frozenset((c.first, c.second)) for c in compared if c.apart}
    of_model = letters([model for model, _ in ranked], apart)
    standings: list[Standing] = []
    for place, (model, value) in enumerate(ranked, start=1):
        tied = bool(standings) and standings[-1].value == value
        standings.append(Standing(model, value, standings[-1].rank if tied else place, of_model[model]))
    return (*standings, *(Standing(model, None, None, None) for model in sorted(values) if values[model] is None))


def letters(models: Sequence[str], apart: set[frozenset[str]]) -> dict[str, str]:
    """Give models letters so that any two share one exactly if they are not apart (Piepho 2004).

    Each letter is of models of which no two are apart; the first of them, in the order given, get the first letters.
    """
    groups: list[list[str]] = []
    for number, model in enumerate(models):
        for other in models[number:]:
            together = model == other or frozenset((model, other)) not in apart
            if together and not any(model in group and other in group for group in groups):
                groups.append(_grown([model, other], models, apart))
    names = dict(zip(_names(), groups, strict=False))
    return {model: "".join(name for name, group in names.items() if model in group) for model in models}


def _grown(seed: Sequence[str], models: Sequence[str], apart: set[frozenset[str]]) -> list[str]:
    """Add to models all others, in order, that are apart from none of them."""
    group = set(seed)
    for model in models:
        if model not in group and not any(frozenset((model, each)) in apart for each in group):
            group.add(model)
    return [model for model in models if model in group]


def _names() -> Iterator[str]:
    """Yield a to z, A to Z, then the same with a number behind."""
    yield from ascii_letters
    number = 2
    while True:
        yield from (f"{letter}{number}" for letter in ascii_letters)
        number += 1


def _adjusted(rows: Sequence[tuple[str, str, dict[str, Any]]]) -> tuple[Comparison, ...]:
    p_values = [_p_value(row) for *_, row in rows]
    adjusted = iter(holm([p for p in p_values if p is not None]))
    return tuple(
        Comparison(
            first=first,
            second=second,
            p_adjusted=None if p is None else next(adjusted),
            **{name: row[name] for name in ("units", "difference", "ci_low", "ci_high", "p")},
        )
        for (first, second, row), p in zip(rows, p_values, strict=True)
    )


def _p_value(row: Mapping[str, Any]) -> float | None:
    """Return the p value, or without a test the one that the end of the interval towards 0 implies."""
    if row["p"] is not None or row["ci_low"] is None or row["ci_high"] is None:
        return None if row["p"] is None else float(row["p"])
    difference = row["difference"]
    reach = difference - row["ci_low"] if difference > 0 else row["ci_high"] - difference
    normal = NormalDist()
    if reach <= 0:
        return None
    return 2 * normal.cdf(-normal.inv_cdf(1 - SIGNIFICANT_BELOW / 2) * abs(difference) / reach)
