"""Agreement of several raters on the same samples: nominal kappas and alpha, intraclass and product-moment correlation.

Each is declared from expressions over rows that hold all raters' answers to one sample, and is a metric like any other.
A statistic without variation to explain is undefined.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from evalake.metrics.composite import Composite, Parts
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimator import Estimator, Jackknife, Sums
from evalake.metrics.estimators import Rate, Ratio, Total, WeightedRate
from evalake.metrics.intervals import Array

ROUNDING = 1e-12
"""Variation below this share of the mean square is rounding error of the sums, not variation."""


def votes(raters: Sequence[pl.Expr], categories: Sequence[object]) -> list[pl.Expr]:
    """Count how many raters chose each category, given each rater's answer (null: none)."""
    return [
        pl.sum_horizontal(*[(rater == pl.lit(category)).fill_null(False).cast(pl.Int64) for rater in raters])
        for category in categories
    ]


def percent_agreement(first: pl.Expr, second: pl.Expr, weight: pl.Expr | None = None) -> Rate:
    """Declare the share of samples answered by both on which the answers agree; a sample counts as its weight says."""
    return _share(first == second, pl.lit(value=True), weight)


def _share(of: pl.Expr, among: pl.Expr, weight: pl.Expr | None) -> Rate:
    return Rate(of, among) if weight is None else WeightedRate(of, among, weight)


def _chance_corrected(parts: Parts, categories: int) -> Array:
    """Compute (observed - expected) / (1 - expected) agreement, from the agreement and both raters' category shares."""
    expected = sum(
        (parts[f"first {i}"] * parts[f"second {i}"] for i in range(categories)), np.zeros_like(parts["agreeing"])
    )
    return np.asarray((parts["agreeing"] - expected) / np.where(expected < 1 - ROUNDING, 1 - expected, np.nan))


def cohen_kappa(
    first: pl.Expr, second: pl.Expr, categories: Sequence[object], weight: pl.Expr | None = None
) -> Composite:
    """Declare the chance-corrected agreement of two raters (Cohen 1960), over samples on which both chose a category.

    A sample counts as its weight says, like one over the probability with which it was drawn.
    """
    both = first.is_in(list(categories)).fill_null(False) & second.is_in(list(categories)).fill_null(False)
    parts: dict[str, Estimator] = {"agreeing": _share(first == second, both, weight)}
    for i, category in enumerate(categories):
        parts[f"first {i}"] = _share(first == pl.lit(category), both, weight)
        parts[f"second {i}"] = _share(second == pl.lit(category), both, weight)
    function = partial(_chance_corrected, categories=len(categories))
    return Composite(function, parts, n=both, low=-1.0, explains_variation=True)


def gwet_ac1(first: pl.Expr, second: pl.Expr, categories: Sequence[object], weight: pl.Expr | None = None) -> Composite:
    """Declare the agreement of two raters beyond chance, which one-sided answers do not deflate (Gwet 2008)."""
    kappa = cohen_kappa(first, second, categories, weight)
    return Composite(partial(_ac1, categories=len(categories)), kappa.parts, n=kappa.n, low=-1.0)


def _ac1(parts: Parts, categories: int) -> Array:
    shares = [(parts[f"first {i}"] + parts[f"second {i}"]) / 2 for i in range(categories)]
    expected = sum((share * (1 - share) for share in shares), np.zeros_like(parts["agreeing"])) / (categories - 1)
    return np.asarray((parts["agreeing"] - expected) / (1 - expected))


def _vote_parts(counts: Sequence[pl.Expr], considered: pl.Expr) -> dict[str, Estimator]:
    answers = pl.when(considered).then(pl.sum_horizontal(*counts))
    pairs = pl.sum_horizontal(*[count * (count - 1) for count in counts])
    shares = {f"share {i}": Rate(pl.when(considered).then(count), answers) for i, count in enumerate(counts)}
    agreeing = Ratio(pl.when(considered).then(pairs / (pl.sum_horizontal(*counts) - 1)), answers, rows=considered)
    return {"agreeing": agreeing, "answers": Total(answers.fill_null(0)), **shares}


def _fleiss(parts: Parts, categories: int) -> Array:
    expected = sum((parts[f"share {i}"] ** 2 for i in range(categories)), np.zeros_like(parts["agreeing"]))
    return np.asarray((parts["agreeing"] - expected) / np.where(expected < 1 - ROUNDING, 1 - expected, np.nan))


def fleiss_kappa(counts: Sequence[pl.Expr], raters: int) -> Composite:
    """Declare the chance-corrected agreement of `raters` raters (Fleiss 1971), over samples that all of them answered.

    counts  how many raters chose each category, as from `votes`
    """
    complete = pl.sum_horizontal(*counts) == raters
    function = partial(_fleiss, categories=len(counts))
    return Composite(function, _vote_parts(counts, complete), n=complete, low=-1.0, explains_variation=True)


def _alpha(parts: Parts, categories: int) -> Array:
    expected = 1 - sum((parts[f"share {i}"] ** 2 for i in range(categories)), np.zeros_like(parts["agreeing"]))
    answers = parts["answers"]
    return np.asarray(
        1 - (answers - 1) / answers * (1 - parts["agreeing"]) / np.where(expected > ROUNDING, expected, np.nan)
    )


def krippendorff_alpha(counts: Sequence[pl.Expr]) -> Composite:
    """Declare Krippendorff's alpha for nominal data (2011), over samples of two answers or more; counts as `votes`."""
    paired = pl.sum_horizontal(*counts) >= 2
    function = partial(_alpha, categories=len(counts))
    return Composite(function, _vote_parts(counts, paired), n=paired, low=-1.0, explains_variation=True)


def _icc(s: Sums, raters: int) -> Array:
    n, k = s["n"], raters
    columns = np.stack([s[f"rater {j}"] for j in range(k)], axis=-1)
    correction = columns.sum(axis=-1) ** 2 / (n * k)
    total = s["squares"] - correction
    between_samples = s["squared means"] * k - correction
    between_raters = (columns**2).sum(axis=-1) / n - correction
    ms_samples = between_samples / (n - 1)
    ms_raters = between_raters / (k - 1)
    ms_error = (total - between_samples - between_raters) / ((n - 1) * (k - 1))
    icc = (ms_samples - ms_error) / (ms_samples + (k - 1) * ms_error + k * (ms_raters - ms_error) / n)
    return np.where(total > ROUNDING * s["squares"], icc, np.nan)


def icc_2_1(scores: Sequence[pl.Expr]) -> Jackknife:
    """Declare the intraclass correlation ICC(2,1): absolute agreement, random raters, one score each.

    Over samples that every rater scored (Shrout and Fleiss 1979).
    """
    complete = pl.all_horizontal(*[score.is_not_null() for score in scores])
    values = [pl.when(complete).then(score).cast(pl.Float64) for score in scores]
    sums = {f"rater {j}": value for j, value in enumerate(values)} | {
        "n": complete,
        "squares": pl.sum_horizontal(*[value**2 for value in values]),
        "squared means": pl.when(complete).then((pl.sum_horizontal(*values) / len(values)) ** 2),
    }
    return Jackknife(partial(_icc, raters=len(scores)), sums, n=complete)


def _pearson(s: Sums) -> Array:
    n = s["n"]
    xx, yy = s["xx"] - s["x"] ** 2 / n, s["yy"] - s["y"] ** 2 / n
    correlation = (s["xy"] - s["x"] * s["y"] / n) / np.sqrt(xx * yy)
    varied = (xx > ROUNDING * s["xx"]) & (yy > ROUNDING * s["yy"])
    return np.where(varied, np.clip(correlation, -1.0, 1.0), np.nan)


def pearson(first: pl.Expr, second: pl.Expr, weight: pl.Expr | None = None) -> Jackknife:
    """Declare the product-moment correlation of two scores (Pearson 1895), over samples that have both."""
    return _of_moments(_pearson, first, second, weight)


def _quadratic(s: Sums) -> Array:
    n = s["n"]
    apart = s["xx"] + s["yy"] - 2 * s["xy"]
    by_chance = s["xx"] + s["yy"] - 2 * s["x"] * s["y"] / n
    return np.where(by_chance > ROUNDING * (s["xx"] + s["yy"]), 1 - apart / by_chance, np.nan)


def quadratic_kappa(first: pl.Expr, second: pl.Expr, weight: pl.Expr | None = None) -> Jackknife:
    """Declare the chance-corrected agreement of two scores, weighted by the square of their difference (Cohen 1968).

    Over samples that have both. Of scores on a scale it is Lin's concordance (1989).
    """
    return _of_moments(_quadratic, first, second, weight)


def _of_moments(
    function: Callable[[Sums], Array], first: pl.Expr, second: pl.Expr, weight: pl.Expr | None
) -> Jackknife:
    both = first.is_not_null() & second.is_not_null()
    x, y = (pl.when(both).then(score).cast(pl.Float64) for score in (first, second))
    sums = {"x": x, "y": y, "xx": x * x, "yy": y * y, "xy": x * y}
    if weight is None:
        return Jackknife(function, {"n": both, **sums}, n=both)
    each = pl.when(both).then(weight.cast(pl.Float64))
    return Jackknife(function, {"n": each, **{name: each * value for name, value in sums.items()}}, n=both)


def mean_absolute_difference(first: pl.Expr, second: pl.Expr, weight: pl.Expr, *, most: float) -> Ratio:
    """Declare the mean absolute difference of two scores, over samples that have both; it is `most` at most."""
    both = first.is_not_null() & second.is_not_null()
    each = pl.when(both).then(weight.cast(pl.Float64))
    return Ratio(each * (first - second).abs(), each, rows=both, high=most)


# How far the decisions of two agree: agreement by decision with intervals over units, and beyond chance.


PAIRS = pl.Schema(
    {**dict.fromkeys(("judge", "decision", "cluster", "first", "second"), pl.String()), "agrees": pl.Boolean()}
)
"""One decision about one thing, as both took it; `agrees` where they mean the same."""

WEIGHED_PAIRS = pl.Schema({**PAIRS, "weight": pl.Float64(), "first_score": pl.Float64(), "second_score": pl.Float64()})
"""Pairs that each stand for as many as their weight says; the scores are the answers where these are numbers."""


def agreement_table(pairs: pl.DataFrame, decisions: Sequence[str]) -> pl.DataFrame:
    """Measure agreement: one row for each judge and each decision that has pairs, in the order of `decisions`.

    Pairs are PAIRS, which all count alike, or WEIGHED_PAIRS.
    Kappa is Cohen's, of scores weighed by the square of their difference, with its interval, and null where nothing
    varies; `ac1` is Gwet's, of words; `difference` is the mean absolute difference of scores.
    """
    if "weight" not in pairs.columns:
        unknown = pl.lit(None, pl.Float64)
        pairs = pairs.with_columns(weight=1.0, first_score=unknown, second_score=unknown)
    rows = [
        _measured(pairs.filter(pl.col("judge") == judge, pl.col("decision") == decision), judge, decision)
        for judge in pairs["judge"].unique().sort()
        for decision in decisions
    ]
    return pl.DataFrame([row for row in rows if row is not None], infer_schema_length=None)


def _measured(pairs: pl.DataFrame, judge: str, decision: str) -> dict[str, object] | None:
    if pairs.is_empty():
        return None
    declared = {metric.name: metric for metric in _metrics(pairs)}
    measured = measure(pairs, list(declared.values()), groups=("judge",), cluster="cluster")
    values = {row["metric"]: row for row in measured.to_dicts()}
    share = values["agreement"]
    return {
        "judge": judge,
        "decision": decision,
        "agreement": share["value"],
        **{name: share[name] for name in ("ci_low", "ci_high")},
        "kappa": values["kappa"]["value"] if "kappa" in values else None,
        **{f"kappa_{end}": values["kappa"][f"ci_{end}"] if "kappa" in values else None for end in ("low", "high")},
        **{name: values[name]["value"] if name in values else None for name in ("ac1", "difference")},
        **{name: share[name] for name in ("n", "units", "reliable")},
    }


def _metrics(pairs: pl.DataFrame) -> Iterator[Metric]:
    first, second, weight = pl.col("first"), pl.col("second"), pl.col("weight")
    yield Metric("agreement", WeightedRate(pl.col("agrees"), weight=weight))
    categories = sorted({*pairs["first"].drop_nulls(), *pairs["second"].drop_nulls()})
    if len(categories) > 1:
        yield Metric("kappa", cohen_kappa(first, second, categories, weight))
        yield Metric("ac1", gwet_ac1(first, second, categories, weight))
    if pairs["first_score"].count():
        scores = pl.col("first_score"), pl.col("second_score")
        yield Metric("kappa", quadratic_kappa(*scores, weight))
        yield Metric("difference", mean_absolute_difference(*scores, weight, most=math.inf))


# The consensus of several judges by Dawid and Skene (1979): judges who err less count for more.


ROUNDS = 1_000
CLOSE = 1e-9
"""Rounds end where no probability moves by more."""

FEWEST_ITEMS = 100
"""The fewest items for a reliable consensus: below, the classes may be exchanged."""

PANEL = "panel:"
"""How the names of panels begin, whose answers are not a judge's own."""
BY_DAWID_SKENE = f"{PANEL}dawid_skene:"
"""How the names of panels begin that are such a consensus."""

_LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class Consensus:
    """What the words show: the probabilities of each item's classes, the classes' shares, each judge's error rates."""

    posterior: Array
    """[items, classes]: the probability of each class."""
    prior: Array
    """[classes]: their shares."""
    errors: Array
    """[judges, classes, words]: how often a judge says each word of an item of a class; 0 where it never met one."""
    converged: bool
    """Whether the last round changed nothing; else the numbers are those of the last of ROUNDS."""


def dawid_skene(counts: Array) -> Consensus:
    """Estimate the consensus.

    Args:
        counts: [items, judges, classes]: how often a judge called an item that, 0 where it was not asked. Every item
            has one word at least.
    """
    words = counts.sum(axis=1)
    posterior = words / words.sum(axis=1, keepdims=True)
    converged = False
    for _ in range(ROUNDS):
        before, prior, errors = posterior, posterior.mean(axis=0), _errors(counts, posterior)
        posterior = _posterior(counts, prior, errors)
        if converged := bool(np.abs(posterior - before).max(initial=0.0) < CLOSE):
            break
    return Consensus(posterior, posterior.mean(axis=0), _errors(counts, posterior), converged)


def _errors(counts: Array, posterior: Array) -> Array:
    words = np.einsum("ic,ijw->jcw", posterior, counts)
    classified = words.sum(axis=2, keepdims=True)
    return np.asarray(np.divide(words, classified, out=np.zeros_like(words), where=classified > 0))


def _posterior(counts: Array, prior: Array, errors: Array) -> Array:
    """Compute each item's class probabilities, from log-likelihoods: products of many words come too close to 0."""
    likelihood = np.einsum("ijw,jcw->ic", counts, np.log(np.fmax(errors, _LEAST))) + np.log(np.fmax(prior, _LEAST))
    relative = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    return np.asarray(relative / relative.sum(axis=1, keepdims=True))


# How well a grouping agrees with a known one: over pairs, each either together or apart.


@dataclass(frozen=True, slots=True)
class GroupingAgreement:
    """Of the pairs that are together in one grouping, how many are in the other."""

    precision: float | None  # of the pairs put together, those that belong together; None: none was put together
    recall: float | None  # of the pairs that belong together, those put together; None: none belongs together
    adjusted_rand: float | None  # 1: the same grouping, 0: as good as chance; None: chance could do no other


def grouping_agreement(assigned: Sequence[Hashable], known: Sequence[Hashable]) -> GroupingAgreement:
    """Compare the group that each of some things was put into with the one that it belongs to.

    The adjusted Rand index is that of Hubert and Arabie (1985).
    """
    both = _pairs(list(zip(assigned, known, strict=True)))
    put, belonging, pairs = _pairs(assigned), _pairs(known), math.comb(len(known), 2)
    expected = put * belonging / pairs if pairs else 0.0
    most = (put + belonging) / 2
    return GroupingAgreement(
        precision=both / put if put else None,
        recall=both / belonging if belonging else None,
        adjusted_rand=(both - expected) / (most - expected) if most != expected else None,
    )


def _pairs(groups: Sequence[Hashable]) -> int:
    """Count the pairs that are together in a group."""
    return sum(math.comb(size, 2) for size in Counter(groups).values())
