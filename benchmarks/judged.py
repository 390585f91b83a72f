"""Judged: a snapshot of a million judged audits, over one Polars pass and over a plain Python loop; and its memory."""

import math
import resource
import time
from collections.abc import Callable, Mapping
from statistics import median

import polars as pl
from polars import selectors

from benchmarks import plain_judged
from benchmarks.judgements import judged_audits
from benchmarks.measure import Measure, report, say

ROWS = 1_000_000
LOOP_ROWS = 600  # the loop draws 2,000 times for every slice of every model and judge: about half a minute
VALUE_ROWS = 60_000
DRAWS = 2000
ROUNDS = 3
SEED = 1

Looped = Mapping[plain_judged.Group, Mapping[str, plain_judged.Estimate]]


def main() -> None:
    """Measure a million rows by the engine; fewer by the loop, with draws and without, whose values must agree."""
    from evalake.metrics.compute import measure
    from evalake.suites.solidity_audit.suite import SUITE
    from evalake.suites.solidity_audit.truth import DEFAULTS

    declared = SUITE.all_metrics(DEFAULTS)
    few, some = judged_audits(LOOP_ROWS), judged_audits(VALUE_ROWS)
    loop_seconds, looped = _loop(few, DRAWS)
    say(f"plain loop with draws: {few.height:,} rows in {loop_seconds:.1f} s")
    same = _compare(measure(few, declared, cluster="cluster"), looped)
    say(f"{same:,} of its numbers are those of the engine")
    value_seconds, _ = _loop(some, 0)
    say(f"plain loop without draws: {some.height:,} rows in {value_seconds:.1f} s")
    many = judged_audits(ROWS)
    say(f"made {many.height:,} rows, {many.estimated_size() / 2**20:.0f} MiB")
    across = SUITE.metrics.across_rows
    assert across is not None
    passes, snapshots = [], []
    for _ in range(ROUNDS):
        passes.append(_timed(lambda: _pass(many))[0])
        took, rows = _timed(lambda: measure(many, declared, cluster="cluster").height + across(many, DEFAULTS).height)
        snapshots.append(took)
        say(f"snapshot {took:.1f} s, one pass {passes[-1] * 1000:.0f} ms")
    seconds = median(snapshots)
    over = median(whole / one for whole, one in zip(snapshots, passes, strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rate, loop_rate, value_rate = many.height / seconds, few.height / loop_seconds, some.height / value_seconds
    behind = f"{rate:,.0f} rows/s ({rows:,} values in {seconds:.1f} s), the loop {loop_rate:,.0f} rows/s"
    without = f"the loop's values and formula intervals alone: {value_rate:,.0f} rows/s"
    passed = f"{seconds:.1f} s, one pass {median(passes) * 1000:.0f} ms; medians of {ROUNDS}"
    report(
        [
            Measure("judged snapshot over one Polars pass", over, 15, False, "x", passed),
            Measure("... how many times as fast as a loop", rate / loop_rate, 30, True, "x", behind),
            Measure("... as a loop that draws nothing", rate / value_rate, 1, True, "x", without),
            Measure("peak memory of that process", peak, 4, False, "GiB", f"{many.height:,} rows"),
        ]
    )


def _pass(frame: pl.DataFrame) -> int:
    """Pass once over every column: count the values of each model and judge, and average the numeric columns."""
    numbers = (selectors.numeric() | selectors.boolean()).mean().name.suffix(" mean")
    return frame.lazy().group_by("model", "judge").agg(pl.all().count(), numbers).collect().height


def _timed(step: Callable[[], int]) -> tuple[float, int]:
    started = time.perf_counter()
    found = step()
    return time.perf_counter() - started, found


def _loop(frame: pl.DataFrame, draws: int) -> tuple[float, Looped]:
    rows = frame.to_dicts()
    started = time.perf_counter()
    found = plain_judged.measure(rows, draws, SEED)
    return time.perf_counter() - started, found


def _compare(measured: pl.DataFrame, looped: Looped) -> int:
    """Count the values that are equal in both; raises where one is not. Intervals differ: formulas ignore clusters."""
    same = 0
    for row in measured.iter_rows(named=True):
        found = looped.get((row["model"], row["judge"], row["slice"], row["slice_value"]), {}).get(row["metric"])
        if found is None:
            continue  # shares of classifications, tokens, costs: the loop leaves them out
        mine, its = row["value"], found[0]
        if mine != its and (mine is None or its is None or not math.isclose(mine, its, abs_tol=1e-7)):
            raise AssertionError(f"{row} is {found} in the loop")
        same += 1
    return same


if __name__ == "__main__":
    main()
