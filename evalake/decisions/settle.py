"""Settle: a gate that buys samples in rounds, under a budget, and stops as soon as its rules are decided."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evalake.core.errors import UsageError
from evalake.decisions.gate import BARE, Look, hold_gate
from evalake.decisions.rules import Change, read_rule, require_within
from evalake.metrics.exact import range_of
from evalake.metrics.power import Anytime
from evalake.reports.gate import Gate
from evalake.reports.ranking import Verdict
from evalake.sdk import Suite
from evalake.sdk.sample import Options
from evalake.storage.lake import Lake
from evalake.storage.reservations import Ceiling, budget_state
from evalake.tasks.runtime.runs import run_row

FIRST_ROUND = 40
GROWTH = 1.5
"""A round's samples over those of the round before: few looks, and none long after the rules could be decided."""

PROMISE = (
    "Rounds are one draw over all datasets together, in proportion, declared clusters whole, drawn and asked in an "
    "order shuffled with a fixed seed. A verdict on these samples is wrong in at most 5 %, though neighbours hang "
    "together. Of further samples that holds where clusters answer independently: declare what hangs together as "
    "`cluster`. Of replies that hang together in time nothing is promised."
)
"""What a settled rule promises, and on which condition."""

Ask = Callable[[int, Ceiling], str]
"""Make a run of so many samples that may spend and call no more than that; returns its id.

They are drawn of all samples in proportion, and hold those of the round before.
"""


@dataclass(frozen=True, slots=True)
class Round:
    """One round: how many samples its run has, what it paid, and what the rules come to."""

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
    """
    anytime, left = Anytime(units or most), budget
    for size in sizes(most):
        run_id = ask(size, left)
        run = run_row(lake, run_id)
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


def _less(ceiling: Ceiling, usd: float, calls: int) -> Ceiling:
    """Take from a ceiling what was spent."""
    return Ceiling(
        None if ceiling.usd is None else ceiling.usd - usd, None if ceiling.calls is None else ceiling.calls - calls
    )


def _stopped(gate: Gate, run: dict[str, Any], size: int, most: int) -> str | None:
    if run["state"] != "completed":
        return f"the run is {run['state']}: {run['message']}"
    if all(check.decision.verdict is not Verdict.UNDECIDED for check in gate.checks):
        return "every rule is decided"
    return "no sample is left" if size == most else None
