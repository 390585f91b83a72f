"""Settle: rounds that stop when the rules are decided, the budget is used up, or no sample is left."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import RUNS
from evalake.core.errors import UsageError
from evalake.decisions.sample_size import Ask, Round, require_settleable, settle, sizes
from evalake.reports.ranking import Verdict
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.reservations import UNLIMITED, Amount, Ceiling, Reservation, reserve
from evalake.suites.registry import suite
from tests.integration.cli.command import recorded

GOOD, BAD = "openai/gpt-4o-mini", "ollama/llama3:8b"
MOST = 200


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


@pytest.fixture
def ask(lake: Lake, tmp_path: Path) -> Callable[..., Ask]:
    """Make what asks: a round is an import of the first results of models that are right with these probabilities."""

    def of(**right: float) -> Ask:
        rng = np.random.default_rng(7)
        drawn = {model: rng.random(MOST) < share for model, share in right.items()}

        def import_first(size: int, ceiling: Ceiling) -> str:
            lines = [
                recorded(n, {"good": GOOD, "bad": BAD}[model], "BLOCK" if (n % 2 == 0) == bool(fine[n]) else "ALLOW")
                for model, fine in drawn.items()
                for n in range(size)
            ]
            path = tmp_path / f"round-{size}.jsonl"
            path.write_text("\n".join(lines) + "\n")
            return import_recorded(lake, suite("command_guard"), [path])

        return import_first

    return of


def rounds(lake: Lake, ask: Ask, *rules: str, against: str | None = None) -> list[Round]:
    return list(settle(lake, ask, MOST, rules, model=GOOD, against=against, budget=UNLIMITED))


def test_what_is_clearly_missed_is_settled_early(lake: Lake, ask: Callable[..., Ask]) -> None:
    (only,) = rounds(lake, ask(good=0.3), "accuracy >= 0.7")
    assert only.gate.verdict is Verdict.FAIL


def test_what_is_not_clear_takes_all_samples_and_stays_undecided(lake: Lake, ask: Callable[..., Ask]) -> None:
    *earlier, last = rounds(lake, ask(good=0.8), "accuracy >= 0.8")
    assert [each.samples for each in (*earlier, last)] == sizes(MOST)
    assert (last.gate.verdict, last.stopped) == (Verdict.UNDECIDED, "no sample is left")
    assert all(each.stopped is None for each in earlier)


def test_changes_are_settled_by_the_paired_difference(lake: Lake, ask: Callable[..., Ask]) -> None:
    rules = "no significant drop in accuracy", "no drop over 1% in accuracy"
    worse = rounds(lake, ask(good=0.6, bad=0.97), *rules, against=BAD)
    assert worse[-1].gate.verdict is Verdict.FAIL
    assert worse[-1].samples < MOST
    check, other = worse[-1].gate.checks
    assert (check.ci_low, check.ci_high, check.p_holm) == (other.ci_low, other.ci_high, None)
    assert (check.ci_high or 1.0) < 0


def test_no_significant_drop_passes_at_the_last_look(lake: Lake, ask: Callable[..., Ask]) -> None:
    alike = rounds(lake, ask(good=0.9, bad=0.9), "no significant drop in accuracy", against=BAD)
    assert [each.gate.verdict for each in alike] == [Verdict.UNDECIDED] * (len(alike) - 1) + [Verdict.PASS]
    assert alike[-1].samples == MOST


def test_no_significant_drop_passes_early_where_it_is_a_rise(lake: Lake, ask: Callable[..., Ask]) -> None:
    (better,) = rounds(lake, ask(good=0.99, bad=0.4), "no significant drop in accuracy", against=BAD)
    assert better.gate.verdict is Verdict.PASS


def test_what_remains_of_the_budget_goes_to_each_round(lake: Lake, ask: Callable[..., Ask]) -> None:
    """Of a run whose cost is unknown, what its own ceiling holds to be spent is gone."""
    ceilings: list[Any] = []
    asked, costs = ask(good=0.8), [0.125, None, 0.25, 1.0]

    def paid(size: int, ceiling: Ceiling) -> str:
        run_id, cost = asked(size, ceiling), costs[len(ceilings)]
        ceilings.append(ceiling.usd)
        run = lake.frame(RUNS).filter(pl.col("run_id") == run_id).collect()
        land(lake, RUNS, run.with_columns(cost_usd=pl.lit(cost, pl.Float64)))
        reserve(lake, run_id, "a process", lambda _: Reservation(Amount(), Amount(0.5)))
        return run_id

    told = list(settle(lake, paid, MOST, ["accuracy >= 0.8"], model=GOOD, against=None, budget=Ceiling(1.0)))
    assert [each.cost_usd for each in told] == costs[: len(told)]
    assert (ceilings, told[-1].stopped) == ([1.0, 0.875, 0.375, 0.125], "the budget is used up")


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ([], "there is nothing to settle without a rule"),
        (["acuracy >= 0.8"], "names no metric of command_guard"),
        (["timeout_error_count <= 3"], "grows with the samples"),
        (["no significant drop in accuracy"], "needs a model to compare with: give --against MODEL"),
        (["accuracy >= 85"], "decides nothing: accuracy is between 0 and 1; 85 percent is 85%"),
        (["accuracy is fine"], "has none of the forms"),
    ],
)
def test_rules_that_cannot_be_settled_are_refused_before_anything_is_paid_for(rules: list[str], told: str) -> None:
    guard = suite("command_guard")
    with pytest.raises(UsageError, match=told):
        require_settleable(guard, guard.options, rules, None)
