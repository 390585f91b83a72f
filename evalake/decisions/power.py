"""Plan: how many samples and repeats show a difference, from what the lake's runs say of its variance."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evalake.core.errors import EvalakeError, UsageError
from evalake.decisions.compare import metrics_named
from evalake.decisions.sides import measured_runs
from evalake.metrics.exact import range_of
from evalake.metrics.power import Components, components, detectable, required
from evalake.reports.coverage import pooled
from evalake.sdk import Suite
from evalake.storage.lake import Lake
from evalake.storage.snapshots import find_snapshot
from evalake.suites.registry import suite as find_suite
from evalake.tasks.coverage import coverage_of
from evalake.tasks.measure import run_frame

REPLICATES = (1, 2, 3, 5, 10)

SAMPLES = ("samples", "samples_low", "samples_high", "samples_at_most")
"""Of a plan: for the typical pair, its 95 % range as the variance is uncertain, and for the pair that varies most."""

BASELINE = "baseline/"
"""What the names of rule-based models begin with, which differ from models more than models from each other."""


class UnknownVarianceError(EvalakeError):
    """The lake holds nothing that says how much differences vary."""


@dataclass(frozen=True)
class Plan:
    """Samples by number of repeats (`rows`), and what they were planned from."""

    suite: str
    metric: str
    assumed: str
    rows: pl.DataFrame
    notes: Sequence[str]


@dataclass(frozen=True)
class _Seen:
    """What a run says of differences: pairs of models, from the typical one to the one that varies most."""

    run_id: str
    pairs: Sequence[Components]
    samples_per_unit: float
    cost_usd: float | None
    """Of one answer."""
    lacks: Sequence[str] = ()
    """Who lacks answers, which its variance does not know."""

    @property
    def typical(self) -> Components:
        return self.pairs[(len(self.pairs) - 1) // 2]

    @property
    def largest(self) -> Components:
        return self.pairs[-1]


def plan(
    lake: Lake,
    suite_name: str,
    detect: float,
    *,
    metric: str | None = None,
    power: float = 0.8,
    sd: float | None = None,
) -> Plan:
    """Plan how many samples, each asked how often, show that one of two models is better by `detect`.

    Args:
        lake: Where variances are looked for: in the newest run of the suite with two models or more.
        suite_name: The suite.
        detect: The difference of the metric.
        metric: The metric; without it the one that ranks.
        power: The chance with which the difference is found.
        sd: The standard deviation of a sample's difference, where it is to be assumed instead.

    Raises:
        UsageError: A number is out of range, or there is no such metric.
        UnknownVarianceError: The lake has no such run, and no `sd` is given.
    """
    suite = find_suite(suite_name, lake)
    name = metric or suite.metrics.headline[0]
    if not (0 < detect < math.inf) or not (0.05 < power < 1) or (sd is not None and not (0 < sd < math.inf)):
        raise UsageError("--detect and --sd are above 0, --power is between 0.05 and 1")
    low, high = range_of(metrics_named(suite, suite.options, [name])[0].estimator)
    if detect > high - low:
        raise UsageError(f"{name} is between {low:g} and {high:g}: no two models differ by {detect:g}")
    if sd is not None:
        row = _row(1, (required(sd**2, detect, power), None, None, None), 1.0, None)
        given = f"a sample's difference has the standard deviation {sd:g}, as given"
        return Plan(suite.name, name, given, _frame([row]), ())
    seen = _seen(lake, suite, name)
    planned = (_planned(seen, times, detect, power) for times in REPLICATES)
    rows = [row for row in planned if row is not None]
    return Plan(suite.name, name, _assumed(seen), _frame(rows), _notes(seen, power))


def _seen(lake: Lake, suite: Suite, name: str) -> _Seen:
    """Find the newest run with two models between which the metric varies."""
    runs = [run for run in measured_runs(lake).values() if run["suite"] == suite.name and len(run["models"]) > 1]
    for run in runs:
        snapshot = find_snapshot(lake, run_id=run["run_id"])
        declared = metrics_named(suite, json.loads(snapshot["options"]), [name])[0]
        as_scored = suite.scored_by(snapshot["scorer_version"])
        frame = run_frame(lake, as_scored, run["run_id"], json.loads(snapshot["pinned_versions"]))
        called = frame.filter(~pl.col("model").str.starts_with(BASELINE))
        frame = called if called["model"].n_unique() > 1 else frame
        pairs = [each for each in components(frame, declared) if each.between or each.within]
        if pairs:
            pairs.sort(key=lambda each: each.between + (each.within or 0.0))
            per_unit = frame["sample_hash"].n_unique() / frame["cluster"].n_unique()
            lacks = [row.who for row in pooled(coverage_of(lake, run)) if row.missing]
            return _Seen(run["run_id"], pairs, per_unit, _cost(frame), lacks)
    raise UnknownVarianceError(
        f"the lake {lake.uri} has no run of {suite.name} in which {name} differs between two models, so how much it "
        "varies is unknown: run two models with --replicates 3 first, or assume it with --sd"
    )


def _cost(frame: pl.DataFrame) -> float | None:
    """Compute the mean price of an answer; None where that of any is unknown."""
    if "cost_usd" not in frame.columns or frame["cost_usd"].null_count():
        return None
    mean = frame["cost_usd"].mean()
    return mean if isinstance(mean, float) else None


def _planned(seen: _Seen, replicates: int, detect: float, power: float) -> dict[str, Any] | None:
    typical, largest = seen.typical.variance(replicates), seen.largest.variance(replicates)
    if typical is None or largest is None:
        return None
    ends = (required(typical * times, detect, power) for times in seen.typical.spread)
    units = [required(typical, detect, power), *ends, required(largest, detect, power)]
    return _row(replicates, units, seen.samples_per_unit, seen.cost_usd)


def _row(
    replicates: int, units: Sequence[int | None], samples_per_unit: float, cost_usd: float | None
) -> dict[str, Any]:
    planned = [None if each is None else math.ceil(each * samples_per_unit) for each in units]
    answers = 2 * (planned[0] or 0) * replicates
    return {
        "replicates": replicates,
        **dict(zip(SAMPLES, planned, strict=True)),
        "answers": answers,
        "cost_usd": None if cost_usd is None else answers * cost_usd,
    }


def _frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    counts = dict.fromkeys(("replicates", *SAMPLES, "answers"), pl.Int64())
    return pl.DataFrame(rows, schema={**counts, "cost_usd": pl.Float64()})


def _assumed(seen: _Seen) -> str:
    typical = seen.typical
    repeats = "unknown" if typical.within is None else f"{typical.within**0.5:.3g}"
    pairs = f"{len(seen.pairs)} pair{'' if len(seen.pairs) == 1 else 's'} of models"
    asked = f"{typical.units:,} units, each asked {typical.replicates} time{'' if typical.replicates == 1 else 's'}"
    deviations = f"{typical.between**0.5:.3g} between units, {repeats} between repeats"
    return (
        f"what the run {seen.run_id} shows of {pairs} on {asked}: a unit's difference has the standard deviation "
        f"{deviations} (typical pair: {typical.first}, {typical.second})"
    )


def _notes(seen: _Seen, power: float) -> list[str]:
    typical = seen.typical
    few = f"the variance is from {typical.units:,} units"
    notes = [f"{few}, so that samples_low to samples_high are its 95 % range"]
    if seen.lacks:
        notes.append(f"{', '.join(seen.lacks)} lack answers in that run: the variance is that of what was answered")
    if typical.within is None:
        notes.append("how far repeats differ is unknown, and what they would save: run with --replicates 3 to know")
    if (variance := typical.variance(typical.replicates)) is not None:
        least = detectable(variance, typical.units, power)
        notes.append(f"that run itself finds differences from {least:.3g} on")
    return notes
