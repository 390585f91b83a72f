"""How many samples a decision takes: planned from the variance of earlier runs, or bought in rounds."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evalake.contracts.tables import RUN_ITEMS
from evalake.core.configuration import UNKNOWN
from evalake.core.errors import EvalakeError, SourceError, UsageError
from evalake.decisions.compare import metrics_named
from evalake.decisions.gate import BARE, Look, hold_gate
from evalake.decisions.rules import Change, read_rule, require_within
from evalake.decisions.sides import measured_runs
from evalake.metrics.limits import range_of
from evalake.metrics.power import Anytime, Components, components, detectable, required
from evalake.reports.coverage import pooled
from evalake.reports.gate import Gate
from evalake.reports.ranking import Verdict
from evalake.sdk import Suite
from evalake.sdk.sample import Options
from evalake.storage.lake import Lake
from evalake.storage.reservations import Ceiling, budget_state
from evalake.storage.snapshots import find_snapshot
from evalake.suites.registry import suite as find_suite
from evalake.tasks.coverage import coverage_of
from evalake.tasks.measure import run_frame
from evalake.tasks.runtime.runs import run_row

REPLICATES = (1, 2, 3, 5, 10)

SAMPLES = ("samples", "samples_low", "samples_high", "samples_at_most")
"""Of a plan: for the typical pair, its 95 % range as the variance is uncertain, and for the pair that varies most."""

PLANNED = {**dict.fromkeys(("replicates", *SAMPLES, "answers"), pl.Int64()), "cost_usd": pl.Float64()}
"""The columns of a plan."""

BASELINE = "baseline/"
"""What the names of rule-based models begin with, which differ from models more than models from each other."""


class UnknownVarianceError(EvalakeError):
    """The lake holds nothing that says how much differences vary."""


@dataclass(frozen=True)
class Plan:
    """Samples by number of repeats (`rows`), and the variances behind the plan."""

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
        samples = required(sd**2, detect, power)
        row = {"replicates": 1, SAMPLES[0]: samples, "answers": 2 * samples}
        given = f"a sample's difference has the standard deviation {sd:g}, as given"
        return Plan(suite.name, name, given, pl.DataFrame([row], PLANNED), ())
    seen = _seen(lake, suite, name)
    planned = (_planned(seen, times, detect, power) for times in REPLICATES)
    rows = [row for row in planned if row is not None]
    return Plan(suite.name, name, _assumed(seen), pl.DataFrame(rows, PLANNED), _notes(seen, power))


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
            known = "cost_usd" in frame.columns and not frame["cost_usd"].null_count()
            cost = frame["cost_usd"].mean() if known else None
            return _Seen(run["run_id"], pairs, per_unit, cost if isinstance(cost, float) else None, lacks)
    raise UnknownVarianceError(
        f"the lake {lake.uri} has no run of {suite.name} in which {name} differs between two models, so how much it "
        "varies is unknown: run two models with --replicates 3 first, or assume it with --sd"
    )


def _planned(seen: _Seen, replicates: int, detect: float, power: float) -> dict[str, Any] | None:
    typical, largest = seen.typical.variance(replicates), seen.largest.variance(replicates)
    if typical is None or largest is None:
        return None
    ends = (required(typical * times, detect, power) for times in seen.typical.spread)
    units = [required(typical, detect, power), *ends, required(largest, detect, power)]
    samples = [None if each is None else math.ceil(each * seen.samples_per_unit) for each in units]
    answers = 2 * (samples[0] or 0) * replicates
    cost = None if seen.cost_usd is None else answers * seen.cost_usd
    return {"replicates": replicates, **dict(zip(SAMPLES, samples, strict=True)), "answers": answers, "cost_usd": cost}


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
    notes = [f"samples_low to samples_high is the 95 % range: the variance is estimated from {typical.units:,} units"]
    if seen.lacks:
        notes.append(f"{', '.join(seen.lacks)} lack answers in that run: the variance is that of the answers")
    if typical.within is None:
        notes.append("the variance between repeats is unknown: run with --replicates 3 to see what repeats would save")
    if (variance := typical.variance(typical.replicates)) is not None:
        least = detectable(variance, typical.units, power)
        notes.append(f"the run itself finds differences of at least {least:.3g}")
    return notes


# Settle: a gate that buys samples in rounds, under a budget, and stops as soon as its rules are decided.

FIRST_ROUND = 40
GROWTH = 1.5
"""A round's samples over those of the round before: few looks, and none long after the rules could be decided."""

PROMISE = (
    "All rounds are one draw over all datasets, in proportion, with declared clusters whole, in an order shuffled with "
    "a fixed seed. A verdict on these samples is wrong in at most 5 %, even where neighbours depend on each other. It "
    "holds for further samples if clusters answer independently: declare samples that belong together as `cluster`. "
    "Nothing is promised where replies depend on their time."
)
"""What a settled rule promises, and on which condition."""

Ask = Callable[[int, Ceiling], str]
"""Make a run of so many samples that may spend and call no more than that; returns its id.

They are drawn of all samples in proportion, and hold those of the round before.
"""


@dataclass(frozen=True, slots=True)
class Round:
    """One round: the number of its samples, its cost, and the decision of each rule."""

    samples: int
    run_id: str
    calls_made: int
    cost_usd: float | None
    gate: Gate
    stopped: str | None
    """Why no further round follows; None where one does."""


def sizes(most: int) -> list[int]:
    """List how many samples each round holds, up to all of them."""
    listed, size = [], float(FIRST_ROUND)
    while size < most:
        listed.append(round(size))
        size *= GROWTH
    return [*listed, most]


def require_settleable(suite: Suite, options: Options, rules: Sequence[str], against: str | None) -> None:
    """Refuse, before anything is paid for, rules that rounds of samples cannot settle.

    Raises UsageError.
    """
    if not rules:
        raise UsageError('there is nothing to settle without a rule: give --rule "METRIC >= NUMBER"')
    declared = {metric.name: metric for metric in suite.all_metrics(options)}
    for rule in map(read_rule, rules):
        metric = declared.get(rule.target.metric)
        if metric is None:
            listed = ", ".join(sorted(declared))
            raise UsageError(f'the rule "{rule.text}" names no metric of {suite.name}, whose metrics are {listed}')
        if isinstance(metric.estimator, BARE):
            raise UsageError(f'the rule "{rule.text}" is of a number that grows with the samples; name a rate')
        require_within(rule, range_of(metric.estimator))
        if isinstance(rule, Change) and against is None:
            raise UsageError(f'the rule "{rule.text}" needs a model to compare with: give --against MODEL')


def settle(
    lake: Lake,
    ask: Ask,
    most: int,
    rules: Sequence[str],
    *,
    model: str,
    against: str | None,
    budget: Ceiling,
    units: int | None = None,
) -> Iterator[Round]:
    """Ask round after round until the rules are decided for the model, the budget is used up, or no sample is left.

    Args:
        lake: Where runs land.
        ask: Makes the run of a round, of both models where there are two.
        most: How many samples there are.
        rules: In the grammar of `evalake.decisions.rules`.
        model: Whose values are held against them.
        against: The model that changes are compared with.
        budget: What all rounds together may bill, and how many calls they may make.
        units: How many clusters the samples are; without it each is one.

    Raises:
        SourceError: A dataset, a prompt or a parameter changed between two rounds, which then are not one draw.
    """
    anytime, left, before = Anytime(units or most), budget, None
    for size in sizes(most):
        run_id = ask(size, left)
        run = run_row(lake, run_id)
        asked = lake.frame(RUN_ITEMS).filter(run_id=run_id).select(*_ASKED, _JUDGE).collect()
        if before is not None and run["state"] == "completed":
            _require_same(before, asked, run_id)
        before = asked
        # A reply that told no usage counts with the most that it may have cost, as for the run's own ceiling
        paid = budget_state(lake, run_id).spent.usd if run["cost_usd"] is None else run["cost_usd"]
        left = _less(left, paid, run["calls_made"])
        look = Look(anytime, is_last=size == most)
        baseline = None if against is None else f"{run_id}:{against}"
        gate = hold_gate(lake, f"{run_id}:{model}", rules, baseline=baseline, look=look)
        is_spent = any(each is not None and each <= 0 for each in (left.usd, left.calls))
        stopped = _stopped(gate, run, size, most) or ("the budget is used up" if is_spent else None)
        yield Round(run["samples"], run_id, run["calls_made"], run["cost_usd"], gate, stopped)
        if stopped:
            return


_ASKED = ("item_id", "sample_hash", "prompt_hash")
# A judge's request where it is known: panels, and items whose answer is missing, have another hash in each round
_JUDGE = pl.when(pl.col("judge_endpoint") != UNKNOWN).then("judge_hash")


def _require_same(before: pl.DataFrame, asked: pl.DataFrame, run_id: str) -> None:
    """Raise SourceError where a round lacks a sample of the round before, or asks otherwise about one."""
    again = before.join(asked, on="item_id", suffix="_now")
    otherwise = again.filter(
        pl.any_horizontal(pl.col(name) != pl.col(f"{name}_now") for name in ("prompt_hash", "judge_hash"))
    )
    changed = "a dataset" if before.join(asked, on="sample_hash", how="anti").height else None
    changed = changed or (f"a prompt or a parameter (of {otherwise.height} items)" if otherwise.height else None)
    if changed is not None:
        raise SourceError(f"{changed} changed before the run {run_id}, so its rounds are no one draw: settle again")


def _less(ceiling: Ceiling, usd: float, calls: int) -> Ceiling:
    """Subtract the money spent from a ceiling."""
    return Ceiling(
        None if ceiling.usd is None else ceiling.usd - usd, None if ceiling.calls is None else ceiling.calls - calls
    )


def _stopped(gate: Gate, run: dict[str, Any], size: int, most: int) -> str | None:
    if run["state"] != "completed":
        return f"the run is {run['state']}: {run['message']}"
    if all(check.decision.verdict is not Verdict.UNDECIDED for check in gate.checks):
        return "every rule is decided"
    return "no sample is left" if size == most else None
