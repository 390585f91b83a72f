"""Usage: which calls a run made, for whom and at what cost; kept in `run_calls`, and told as metrics."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import RUN_CALLS
from evalake.models.request import Failure, Reply
from evalake.sdk import Exchange
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.tasks.converse import Conversation
from evalake.tasks.runtime.runs import Tally

USAGE_VERSION = 2
"""Changes whenever the metrics of usage do."""

METRICS = ("calls_made", "calls_from_ledger", "cost_usd_avoided", "latency_from_ledger")

Pair = tuple[str, str]  # subject and judge; no judge is an empty name


class CallCounter:
    """Counts every call once for the run, and once for each pair of subject and judge that it was made for."""

    def __init__(self) -> None:
        self.total = Tally()
        self.pairs: defaultdict[Pair, Tally] = defaultdict(Tally)
        self._counted: set[int] = set()  # hashes of what is counted; the keys themselves would take ten times as much

    def add(self, conversations: Sequence[Conversation]) -> None:
        """Count the calls of some conversations; those that were counted before are not counted again."""
        of_pair: defaultdict[Pair, list[Conversation]] = defaultdict(list)
        for conversation in conversations:
            of_pair[conversation.item.model, conversation.item.judge or ""].append(conversation)
        for pair, theirs in of_pair.items():
            asked = _tally(self._new(theirs, None))
            self.total += asked
            # Only what several judges judge is shared by pairs.
            self.pairs[pair] += _tally(self._new(theirs, pair)) if pair[1] else asked

    def _new(self, conversations: Iterable[Conversation], pair: Pair | None) -> Iterator[Exchange]:
        for conversation in conversations:
            for answer in conversation.answered:
                failed = isinstance(answer.outcome, Failure)
                mark = hash((pair, answer.prompt_hash, conversation.item.replicate, failed))
                if mark not in self._counted:
                    self._counted.add(mark)
                    yield answer


def save(lake: Lake, run_id: str, pairs: Mapping[Pair, Tally]) -> None:
    """Land what the run asked, by subject and judge, in place of what was known before."""
    names = RUN_CALLS.row.model_fields.keys() & Tally.__dataclass_fields__.keys()
    rows: list[dict[str, Any]] = [
        {"run_id": run_id, "model": model, "judge": judge, **{name: getattr(tally, name) for name in names}}
        for (model, judge), tally in pairs.items()
    ]
    if rows:
        land(lake, RUN_CALLS, conform(rows, RUN_CALLS))


def usage_metrics(calls: pl.DataFrame) -> pl.DataFrame:
    """Turn the rows of `run_calls` of one run into metrics: model, judge and the columns of `MEASURES`.

    n is the number of calls that were answered; counts and sums have no uncertainty.
    """
    from evalake.metrics.compute import MEASURES, RELIABLE_FROM

    return (
        calls.with_columns(
            n=(pl.col("calls_made") + pl.col("calls_from_ledger")).cast(pl.Int64),
            judge=pl.when(pl.col("judge") != "").then("judge"),
        )
        .unpivot(METRICS, index=["model", "judge", "n"], variable_name="metric", value_name="value")
        .with_columns(
            pl.lit("all").alias("slice"),
            pl.lit("").alias("slice_value"),
            pl.when(pl.col("n") > 0).then(pl.col("value").cast(pl.Float64)).alias("value"),
            pl.lit(None, pl.Int64).alias("tier"),
            *(pl.lit(None, pl.Float64).alias(name) for name in ("n_eff", "se", "ci_low", "ci_high")),
            pl.col("n").alias("units"),
            (pl.col("n") >= RELIABLE_FROM).alias("reliable"),
        )
        .select("model", "judge", *MEASURES)
        .sort("model", "judge", "metric")
    )


def _tally(answers: Iterable[Exchange]) -> Tally:
    calls = list(answers)
    made = [a.outcome for a in calls if isinstance(a.outcome, Reply) and not a.from_ledger]
    known = [a.outcome for a in calls if isinstance(a.outcome, Reply) and a.from_ledger]
    failures = [a.outcome for a in calls if isinstance(a.outcome, Failure)]
    return Tally(
        calls_made=len(made),
        calls_from_ledger=len(known),
        calls_failed=sum(failure.kind != "budget" for failure in failures),
        latency_from_ledger=sum(reply.latency_ms is not None for reply in known),
        input_tokens=_sum(reply.input_tokens for reply in made),
        output_tokens=_sum(reply.output_tokens for reply in made),
        cost_usd=_plus_failed(_sum(reply.cost_usd for reply in made), (*made, *failures)),
        cost_usd_avoided=_sum(reply.cost_usd for reply in known),
    )


def _plus_failed(cost_usd: float | None, outcomes: Iterable[Reply | Failure]) -> float | None:
    """Add to a cost that of the failed attempts whose usage is known."""
    return None if cost_usd is None else cost_usd + sum(outcome.failed_cost_usd or 0.0 for outcome in outcomes)


def _sum(values: Iterable[Any]) -> Any:
    """Compute the sum, or None where a value is unknown."""
    listed = list(values)
    return None if any(value is None for value in listed) else sum(listed)
