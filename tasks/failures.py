"""Failures: calls that were given up on become rows of `call_failures`; the next run asks them again."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import polars as pl

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALL_FAILURES, CALLS, RUN_ITEMS, RUNS
from evalake.core.redaction import redact
from evalake.metrics.agreement import PANEL
from evalake.metrics.limits import Answered, Bounds, Unknown, open_bounds, undecided
from evalake.models.request import Failure
from evalake.reports.coverage import IN_QUARANTINE, NOT_ASKED, STOOD_IN, counted
from evalake.reports.ranking import Missing
from evalake.sdk import Options, Suite
from evalake.sdk.results import FALLBACK_FOR
from evalake.storage.forget import refused_rows
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.snapshots import Bounded
from evalake.tasks.clusters import item_hash, sample_hash
from evalake.tasks.converse import Conversation
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.runs import under_its_criteria

LONGEST_REASON = 200


def failure_of(conversation: Conversation) -> Failure:
    """Find the failure that a failed conversation ended with."""
    outcome = conversation.answered[-1].outcome
    assert isinstance(outcome, Failure)
    return outcome


def without_answer(conversations: Sequence[Conversation], judge: str, again: str) -> str | None:
    """Say how many items got no answer from a judge, and that `again` asks for these; None where all got one."""
    failed = sorted(failure_of(conversation).kind for conversation in conversations if conversation.failed)
    if not failed:
        return None
    of_all = f"{len(failed)} of {len(conversations)} items got no answer from {judge}"
    return f"{of_all} ({', '.join(dict.fromkeys(failed))}); {again} asks for these alone"


def land_failures(context: RunContext, conversations: Sequence[Conversation]) -> None:
    """Land a row for each call that ended one of the conversations, once for each call however many share it."""
    rows = {
        (conversation.answered[-1].prompt_hash, conversation.item.replicate): _row(context, conversation)
        for conversation in conversations
        if conversation.failed and not conversation.is_refused
    }
    if rows:
        land(context.lake, CALL_FAILURES, conform(list(rows.values()), CALL_FAILURES))


def standing_failures(lake: Lake, run_id: str) -> pl.LazyFrame:
    """Read the failed calls of a run that were not answered later in it, as by its next attempt."""
    call, failures = ["prompt_hash", "replicate"], lake.frame(CALL_FAILURES).filter(run_id=run_id).collect()
    if failures.is_empty():
        return failures.lazy()
    replies = lake.frame(CALLS).filter(pl.col("prompt_hash").is_in(failures["prompt_hash"].implode()))
    ended = lake.frame(RUNS).filter(run_id=run_id).select("run_id", "ended_at")
    later = replies.drop("run_id").join(failures.lazy(), on=call).join(ended, on="run_id", how="left")
    in_run = (pl.col("answered_at") <= pl.col("ended_at")).fill_null(value=True)
    later = later.filter(pl.col("answered_at") > pl.col("failed_at"), in_run)
    return failures.lazy().join(later, on=call, how="anti")


def with_failed_calls(lake: Lake, run_id: str, items: pl.LazyFrame) -> pl.LazyFrame:
    """Add to items of a run `given_up`, the kind of the failed call to the model or else the judge, null for none."""
    kinds = standing_failures(lake, run_id).select("prompt_hash", "replicate", given_up="kind")
    of_judge = kinds.rename({"prompt_hash": "judge_hash", "given_up": "judge_given_up"})
    items = items.join(kinds, on=["prompt_hash", "replicate"], how="left")
    items = items.join(of_judge, on=["judge_hash", "replicate"], how="left")
    return items.with_columns(given_up=pl.coalesce("given_up", "judge_given_up")).drop("judge_given_up")


class FailureCounter:
    """Counts failures by model and kind, and keeps each model's first reason."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._kinds: dict[str, Counter[str]] = {}
        self._reasons: dict[str, str] = {}

    def add(self, conversation: Conversation) -> None:
        """Count the failure that a failed conversation ended with."""
        failure, model = failure_of(conversation), _called(self._context, conversation)
        self._kinds.setdefault(model, Counter())[failure.kind] += 1
        self._reasons.setdefault(model, failure.message)

    @property
    def kinds(self) -> Counter[str]:
        """How many failures there are of each kind."""
        return sum(self._kinds.values(), Counter())

    def __str__(self) -> str:
        """Name each model, its address where the configuration has one, the kinds, and the first reason."""
        return "; ".join(
            f"{self._addressed(model)}: {counted(kinds)} ({self._reasons[model][:LONGEST_REASON]})"
            for model, kinds in self._kinds.items()
        )

    def _addressed(self, model: str) -> str:
        configured = self._context.configuration
        address = configured.model(configured.real_model(model)).api_base
        return model if address is None else f"{model} at {redact(address)}"


def _called(context: RunContext, conversation: Conversation) -> str:
    """Find the model whose call ended the conversation: the judge, or the subject."""
    judged = len(conversation.answered) > 1 or not context.suite.conversation.asks_subject
    return (conversation.item.judge or conversation.item.model) if judged else conversation.item.model


def _row(context: RunContext, conversation: Conversation) -> dict[str, Any]:
    return {
        "run_id": context.run_id,
        "prompt_hash": conversation.answered[-1].prompt_hash,
        "replicate": conversation.item.replicate,
        "model": _called(context, conversation),
        **{name: value for name, value in asdict(failure_of(conversation)).items() if name != "tried"},
        "failed_at": datetime.now(UTC),
    }


# Missing items: their number by model and reason, and the bounds of the headline metrics.


ASKED = {"prompt_hash": pl.String, "judge_hash": pl.String, "sample_hash": pl.String, "replicate": pl.Int64}
ANSWER = ("sample_hash", "prompt_type", "replicate")
Subject = tuple[str, str | None]
"""A model, and the judge that saw it."""

UNDECIDED = "panel_undecided_rate"
"""The metric by which a suite says on which share of answers panels did not decide.

A panel lacks these, and the items that all of its judges lack.
"""


@dataclass(frozen=True)
class Lacking:
    """The missing items of one model and judge: absent rows, and rows without a judgement or decision."""

    items: int
    kinds: Counter[str]
    answered: Answered

    @property
    def count(self) -> int:
        """The number of missing items."""
        return len(self.answered.gone) + self.opened.height

    @property
    def opened(self) -> pl.DataFrame:
        """The rows without a judgement or decision."""
        return self.answered.rows.clear() if self.answered.opened is None else self.answered.opened

    @property
    def unknown(self) -> Unknown:
        """The missing items in the form for bounds."""
        return len(self.answered.gone), self.opened


def lacking(
    lake: Lake,
    suite: Suite,
    run_id: str,
    versions: Mapping[str, int | None],
    frame: pl.LazyFrame,
    prompt_type: str | None = None,
) -> dict[Subject, Lacking]:
    """Find the missing items of a run by model and judge, without complete ones.

    Args:
        lake: The lake.
        suite: The suite of the run.
        run_id: The run.
        versions: The table versions that the rows were read at.
        frame: The run's rows, as the metrics are computed from them.
        prompt_type: The only prompt type whose rows are in the frame, where it has not all.
    """
    listed = lake.pinned(RUN_ITEMS, versions).filter(pl.col("run_id") == run_id)
    if prompt_type is not None:
        listed = listed.filter(pl.col("prompt_type") == prompt_type)
    opened = _opened(suite, frame).collect(engine="streaming")
    # Each row is of another item, unless the suite joined others to them.
    if opened.is_empty() and suite.metrics.join_inputs is None and _height(listed) == _height(frame):
        return {}
    absent = dict(_by(without_row(lake, suite, run_id, versions, listed).collect(engine="streaming")))
    rows = dict(_by(opened))
    named = pl.col("sample_hash") if frame.collect_schema()["sample_hash"] == pl.String else sample_hash()
    found = {}
    for (model, judge), sized in _by(listed.group_by("model", "judge").len().collect(engine="streaming")):
        planned = int(sized["len"].item())
        of_row, missing = rows.get((model, judge), opened.clear()), absent.get((model, judge))
        kinds = Counter[str](of_row["open"].to_list())
        gone: list[str | int] = []
        if missing is not None:
            kinds.update(missing["why"].to_list())
            gone = missing.select(named).to_series().to_list()
        never = None
        if (judge or "").startswith(PANEL):
            asked = listed.filter(pl.col("model") == model)
            own = asked.filter(pl.col("judge") == judge)
            never = asked.select(ANSWER).unique().join(own, on=list(ANSWER), how="anti").collect(engine="streaming")
        if never is not None and not never.is_empty():
            kinds[NOT_ASKED] += never.height
            gone += never.select(named).to_series().to_list()
        if kinds:
            own = frame.filter(pl.col("model") == model, pl.col("judge").eq_missing(judge))
            total = planned + (0 if never is None else never.height)
            found[model, judge] = Lacking(total, kinds, Answered(own.collect(), gone, of_row))
    return found


def _height(rows: pl.LazyFrame) -> int:
    return int(rows.select(pl.len()).collect().item())


def _opened(suite: Suite, frame: pl.LazyFrame) -> pl.LazyFrame:
    """Find the rows without a judgement or decision, with why in `open`; rows that metrics hold for wrong are none."""
    why = suite.scoring.outcomes.missing
    names = set() if why is None else set(why.meta.root_names())
    if why is None or names & set(suite.metrics.unmeasured) or not names <= set(frame.collect_schema()):
        return frame.clear().with_columns(open=pl.lit(None, pl.String))
    return frame.with_columns(open=why.cast(pl.String)).filter(pl.col("open").is_not_null())


def missing_items(lacks: Mapping[Subject, Lacking], bounded: Bounded) -> list[Missing]:
    """List the missing items of a run by model and judge, with the bounds of the headline metrics."""
    return [
        Missing(*subject, each.items, each.count, dict(each.kinds.most_common()), bounded.get(subject, {}))
        for subject, each in lacks.items()
    ]


def headline_bounds(suite: Suite, frame: pl.LazyFrame, lacks: Mapping[Subject, Lacking], options: Options) -> Bounded:
    """Compute by model and judge the bounds of the headline metrics that lack something, and have any."""
    metrics = [each for each in suite.all_metrics(options) if each.name in suite.metrics.headline]
    found: dict[Subject, dict[str, Bounds]] = {}
    every = frame.select("model", "judge").unique().collect(engine="streaming").sort("model", "judge").rows()
    for model, judge in every if any(undecided(each.estimator, frame) for each in metrics) else lacks:
        rows = frame.filter(pl.col("model") == model, pl.col("judge").eq_missing(judge)).collect()
        if rows.is_empty():
            continue
        unknown = lacks[model, judge].unknown if (model, judge) in lacks else (0, None)
        ends = {each.name: open_bounds(rows, replace(each, slices=("all",)), unknown) for each in metrics}
        found[model, judge] = {name: each for name, each in ends.items() if each is not None and isfinite(sum(each))}
    return found


def without_row(
    lake: Lake, suite: Suite, run_id: str, versions: Mapping[str, int | None], listed: pl.LazyFrame
) -> pl.LazyFrame:
    """Find which of the listed items of a run have no row, and `why`."""
    under = pl.col("scorer_version") == suite.scoring.version, under_its_criteria(lake, suite, run_id)
    scored = lake.pinned(suite.results, versions).filter(*under)
    item = item_hash(suite)
    lacks = listed.with_columns(item).join(scored.select(item), on="item", how="anti").drop("item")
    return with_reasons(lake, suite, run_id, lacks)


def with_reasons(lake: Lake, suite: Suite, run_id: str, items: pl.LazyFrame) -> pl.LazyFrame:
    """Add to items of a run `why` they have no row: judged by another, a failed call, in quarantine, or not asked."""
    found = with_failed_calls(lake, run_id, items)
    found = found.join(_refused_items(lake, suite, run_id).lazy(), on=list(ASKED), how="left", nulls_equal=True)
    found = _with_stand_ins(lake, suite, run_id, found)
    return found.with_columns(why=pl.coalesce("stood_in", "given_up", "refused", pl.lit(NOT_ASKED)))


def _with_stand_ins(lake: Lake, suite: Suite, run_id: str, items: pl.LazyFrame) -> pl.LazyFrame:
    """Add `stood_in` to items that a fallback has judged in place of their judge, null for others."""
    if FALLBACK_FOR not in suite.results.column:
        return items.with_columns(stood_in=pl.lit(None, pl.String))
    listed = lake.frame(RUN_ITEMS).filter(run_id=run_id).select(item_hash(suite))
    under = under_its_criteria(lake, suite, run_id)
    rows = lake.frame(suite.results).filter(under, scorer_version=suite.scoring.version).drop_nulls(FALLBACK_FOR)
    rows = rows.with_columns(item_hash(suite)).join(listed, on="item", how="semi")
    judged = rows.select("model", *ANSWER, judge=FALLBACK_FOR, stood_in=pl.lit(STOOD_IN)).unique()
    return items.join(judged, on=["model", *ANSWER, "judge"], how="left")


def _refused_items(lake: Lake, suite: Suite, run_id: str) -> pl.DataFrame:
    """Read which items of a run have rows in quarantine, by key, with the reason in `refused`."""
    refused = refused_rows(lake, run_id, [suite.results])
    rows = [{name: row.get(name) for name in ASKED} for row in refused]
    return pl.DataFrame(rows, schema=ASKED, strict=False).unique().with_columns(refused=pl.lit(IN_QUARANTINE))


def _by(rows: pl.DataFrame) -> Iterator[tuple[tuple[str, str | None], pl.DataFrame]]:
    for (model, judge), part in rows.sort("model", "judge").group_by("model", "judge", maintain_order=True):
        yield (str(model), None if judge is None else str(judge)), part
