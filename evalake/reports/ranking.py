"""Ranking: letters that tell which models are apart, from all paired differences in the quantity that ranks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import combinations
from statistics import NormalDist
from string import ascii_letters
from types import MappingProxyType
from typing import Any

import polars as pl

from evalake.metrics.agreement import BY_DAWID_SKENE
from evalake.metrics.compare import DRAWS, SIGNIFICANT_BELOW, compare, holm
from evalake.metrics.compute import Metric
from evalake.metrics.corrected import Corrected, implied_p, with_corrections
from evalake.metrics.limits import ERROR, Answered, Bounds, Ends, bounds_of_differences, left_open

# Decide whether a value reaches a target, as far as its interval tells: PASS, FAIL, or UNDECIDED.


MOST_SAMPLES = 1_000_000
"""Nobody will take more, so that no number is named beyond."""

FEWEST_UNITS = 20
"""Below so many units nothing passes, unless the rule says otherwise."""

POWER = 0.8
"""The chance with which the samples that are advised settle a rule."""

Z_LIMIT = NormalDist().inv_cdf(1 - ERROR / 2)
Z_BOTH = Z_LIMIT + NormalDist().inv_cdf(POWER)
"""Standard errors to a limit, and so many more that it is passed with that chance."""

FIXED = (
    "more units settle a rule with 80 % power if the value stays what it is; deciding again after them errs more "
    "often than 2.5 %: `evalake settle` decides in rounds"
)
"""What a number of more units means, and whose work it is."""


class Verdict(StrEnum):
    """What limits say of a target."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict; where it is undecided, how many more units settle it with 80 % power, None where nobody can say.

    `more_at_least` is that number if the truth is at the far end of the interval; at its near end no number suffices.
    """

    verdict: Verdict
    more_samples: int | None = None
    more_at_least: int | None = None
    reason: str | None = None

    @property
    def text(self) -> str:
        """The verdict, and how many more units it needs."""
        return self.verdict if self.more_samples is None else f"{self.verdict} +{self.more_samples:,}"


def decide(
    value: float,
    low: float | None,
    high: float | None,
    units: int,
    target: float,
    *,
    higher_is_better: bool = True,
    fewest: int = FEWEST_UNITS,
    trials: float | None = None,
    alike: int | None = None,
) -> Decision:
    """Decide by limits: PASS where all between them reaches the target, FAIL where nothing does.

    Args:
        value: What was measured.
        low: The lower limit.
        high: The upper limit.
        units: How many units they rest on.
        target: What the value must reach.
        higher_is_better: Whether more is better.
        fewest: Fewer units than these never pass.
        trials: Of a proportion, how many independent trials the units are worth.
        alike: How many equal units tell as much, where some have more rows than others.
    """
    if low is None or high is None:
        return Decision(Verdict.UNDECIDED)
    if low >= target if higher_is_better else high <= target:
        return too_few(units, fewest, alike) or Decision(Verdict.PASS)
    if high < target if higher_is_better else low > target:
        return Decision(Verdict.FAIL)
    far, reach = (high, value - low) if value > target else (low, high - value)
    if trials:
        more, least = (_more_trials(units, trials, end, target) for end in (value, far))
    else:
        more, least = (_more(units, reach, abs(end - target)) for end in (value, far))
    return Decision(Verdict.UNDECIDED, more, least if more is not None else None)


def too_few(units: int, fewest: int, alike: int | None = None) -> Decision | None:
    """Decide that fewer units than `fewest` do not pass; None for enough.

    Units of unequal size tell as much as `alike` equal ones. How many more it takes then depends on their sizes.
    """
    if min(units, units if alike is None else alike) >= fewest:
        return None
    reason = f"fewer than {fewest} units never pass"
    if alike is not None and alike < units:
        unequal = f"{units} units of unequal size tell as much as {alike} equal ones"
        return Decision(Verdict.UNDECIDED, reason=f"{unequal}: {reason}; `evalake settle` takes as many as it needs")
    return Decision(Verdict.UNDECIDED, fewest - units, fewest - units, reason)


def _more(units: int, reach: float, distance: float) -> int | None:
    """Compute how many more units tell a distance from 0 with 80 % power; None where too many to name.

    The limit nears the value by the root of the number of units.
    """
    return _named(units * ((Z_BOTH / Z_LIMIT * reach / distance) ** 2 - 1) if distance else math.inf)


def _more_trials(units: int, trials: float, value: float, target: float) -> int | None:
    """Compute how many more units tell a proportion from its target with 80 % power."""
    spread = Z_LIMIT * math.sqrt(target * (1 - target)) + (Z_BOTH - Z_LIMIT) * math.sqrt(value * (1 - value))
    needed = (spread / (value - target)) ** 2 if value != target else math.inf
    return _named(units * (needed / trials - 1))


def _named(more: float) -> int | None:
    return max(1, math.ceil(more)) if more <= MOST_SAMPLES else None


def fails_by_chance(checks: int) -> str:
    """Say how many checks fail by chance alone where models are exactly at their numbers."""
    any_of = 1 - (1 - ERROR / 2) ** checks
    return (
        f"fails by chance in up to 2.5 %; of {checks}, at most {checks * ERROR / 2:.2g} on average, and at least one "
        f"in up to {100 * any_of:.0f} %"
    )


def of_whole_run(decision: Decision, state: str) -> Decision:
    """Turn a PASS of a run that is not complete into UNDECIDED: what is missing is not missing by chance."""
    if state == "completed" or decision.verdict is not Verdict.PASS:
        return decision
    return Decision(Verdict.UNDECIDED, reason=f"it would pass, but the run is {state}")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that decide about a value: exact ones, and those whatever is missing; of a proportion its trials.

    `alike` is the number of equal units that tell as much.

    `bounds` are the lowest and the highest value that what is missing leaves, None where nothing is.
    """

    exact: Ends
    whatever: Ends
    trials: float | None = None
    bounds: Bounds | None = None
    alike: int | None = None


def decide_whatever_is_missing(
    row: Mapping[str, Any], widened: Ends, target: float, *, higher_is_better: bool = True, fewest: int = FEWEST_UNITS
) -> Decision:
    """Decide about a measured row by its limits, unless what is missing could change that.

    Args:
        row: value, ci_low, ci_high and units, maybe alike; of a proportion also trials.
        widened: The limits whatever the missing rows are.
        target: What the value must reach.
        higher_is_better: Whether more is better.
        fewest: Fewer units than these never pass.
    """
    of_units = partial(decide, trials=row.get("trials"), alike=row.get("alike"))
    decided = partial(of_units, higher_is_better=higher_is_better, fewest=fewest)
    known, whatever = (
        decided(row["value"], low, high, row["units"], target)
        for low, high in ((row["ci_low"], row["ci_high"]), widened)
    )
    if known.verdict is Verdict.UNDECIDED or whatever.verdict is known.verdict:
        return known
    return Decision(Verdict.UNDECIDED, reason=f"it would {known.verdict.lower()}, but what is missing may change that")


def as_judged(decision: Decision, judge: str | None) -> Decision:
    """Withhold a PASS by a consensus of Dawid and Skene, which may have exchanged right and wrong."""
    withheld = decision.verdict is Verdict.PASS and judge is not None and judge.startswith(BY_DAWID_SKENE)
    reason = "a consensus of Dawid and Skene never decides PASS"
    return Decision(Verdict.UNDECIDED, reason=reason) if withheld else decision


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
    def share(self) -> str:
        """The share of missing items, with their kinds, in a few words."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.items())
        return f"{100 * self.missing / self.items:.1f}% missing: {kinds}"

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


def compare_all(
    frame: pl.DataFrame,
    metric: Metric,
    lacks: Mapping[tuple[str, str | None], Answered] = MappingProxyType({}),
    corrected: Mapping[tuple[str, str | None], Corrected] = MappingProxyType({}),
) -> dict[str | None, tuple[Comparison, ...]]:
    """Compare every pair of models in a metric over all samples; p values are adjusted over all pairs of one judge.

    Args:
        frame: Result rows with model, judge, sample_hash, cluster and what the metric reads.
        metric: The metric that ranks.
        lacks: What is known of models and judges that lack something; what it leaves open is not significant.
        corrected: Values that replace those of the frame, where both models of a pair have one.
    """
    plain = replace(metric, slices=("all",))

    def known(model: str, judge: str | None) -> Answered:
        rows = frame.filter(pl.col("model") == model, pl.col("judge").eq_missing(judge))
        return lacks.get((model, judge)) or Answered(rows)

    models = frame["model"].unique().sort().to_list()
    of_model = {model: frame.filter(pl.col("model") == model) for model in models}
    compared: dict[str | None, list[tuple[str, str, dict[str, Any]]]] = {}
    draws = max(DRAWS, DRAWS_PER_PAIR * math.comb(len(models), 2))
    for first, second in combinations(models, 2):
        rows = compare(of_model[first], of_model[second], [metric], cluster="cluster", pair="sample_hash", draws=draws)
        for row in rows.filter(pl.col("slice") == "all").iter_rows(named=True):
            one, other = (known(model, row["judge"]) for model in (first, second))
            (ends,) = bounds_of_differences([row["difference"]], [plain], one, other)
            row |= dict(zip(("bound_low", "bound_high"), ends, strict=True))
            row = with_corrections(row, *(corrected.get((model, row["judge"])) for model in (first, second)))
            compared.setdefault(row["judge"], []).append((first, second, row))
    return {judge: adjusted_pairs(compared[judge]) for judge in sorted(compared, key=lambda name: name or "")}


def stand(
    values: Mapping[str, float | None],
    compared: Sequence[Comparison],
    *,
    higher_is_better: bool = True,
    worst: Mapping[str, float] = MappingProxyType({}),
) -> tuple[Standing, ...]:
    """Order models by value, best first; those without one last, by name.

    A model that lacks answers stands where the worst case puts it (`worst`): what is missing helps nobody.
    Models that share no samples cannot be told apart, and share a letter.
    """
    sign = -1.0 if higher_is_better else 1.0

    def ends(model: str, value: float | None) -> tuple[float, float]:
        known = math.nan if value is None else value
        return known, worst.get(model, known)

    ranked = sorted(
        ((model, value) for model, value in values.items() if value is not None),
        key=lambda mv: (sign * worst.get(mv[0], mv[1]), mv[0]),
    )
    apart = {frozenset((c.first, c.second)) for c in compared if c.apart}
    of_model = letters([model for model, _ in ranked], apart)
    standings: list[Standing] = []
    for place, (model, value) in enumerate(ranked, start=1):
        before = standings[-1] if standings else None
        tied = before is not None and all(map(math.isclose, ends(before.model, before.value), ends(model, value)))
        standings.append(Standing(model, value, standings[-1].rank if tied else place, of_model[model]))
    return (*standings, *(Standing(model, None, None, None) for model in sorted(values) if values[model] is None))


def letters(models: Sequence[str], apart: set[frozenset[str]]) -> dict[str, str]:
    """Give models letters so that any two share one exactly if they are not apart (Piepho 2004).

    The models of a letter do not differ from each other; the first of them, in the order given, get the first letters.
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


def adjusted_pairs(rows: Sequence[tuple[str, str, dict[str, Any]]]) -> tuple[Comparison, ...]:
    """Adjust compared rows of pairs over all pairs of one judge; each has the names of its two sides before it."""
    p_values = [_p_value(row) for *_, row in rows]
    adjusted = iter(holm([p for p in p_values if p is not None]))
    names = ("units", "difference", "ci_low", "ci_high", "p", "p_adjusted")
    found = []
    for (first, second, row), p in zip(rows, p_values, strict=True):
        known = left_open(row | {"p_adjusted": None if p is None else next(adjusted)})
        found.append(Comparison(first, second, **{name: known[name] for name in names}))
    return tuple(found)


def _p_value(row: Mapping[str, Any]) -> float | None:
    """Return the p value, or without a test the one that the end of the interval towards 0 implies."""
    if row["p"] is not None or row["ci_low"] is None or row["ci_high"] is None:
        return None if row["p"] is None else float(row["p"])
    return implied_p(row["difference"], row["ci_low"], row["ci_high"])
