"""Rescore: derive a run's rows and snapshot again from the ledger, by the present rules, without calls."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from evalake.contracts.tables import CALLS, RUN_ITEMS, SAMPLES
from evalake.contracts.tables.runs import JUDGE_CALL, SUBJECT_CALL
from evalake.core.configuration import Configuration
from evalake.core.errors import EvalakeError, LakeError
from evalake.models.request import Request
from evalake.reports.wording import count_of
from evalake.sdk import Converse, Exchange, Item, Options
from evalake.sdk.results import FALLBACK_FOR, unjudged_hash
from evalake.storage.lake import Lake
from evalake.storage.landing import Landed
from evalake.storage.ledger import LedgerIndex, key_of
from evalake.storage.objects import require_write_access
from evalake.tasks.collect import derive
from evalake.tasks.converse import Conversation, exchange_of, going_on, replay_from_ledger
from evalake.tasks.coverage import cover_again
from evalake.tasks.extract import sample_of
from evalake.tasks.measure import measure
from evalake.tasks.publish import Published, publish_conversations
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.runs import amended, criteria_of, run_row

ITEM = ("sample_hash", "model", "judge", "prompt_type", "replicate")


class RescoreError(EvalakeError):
    """Some rows of a run could not be scored again; the others have landed."""


@dataclass(frozen=True, slots=True)
class Rescored:
    """The result of a rescoring: new snapshot, published rows, and the number of items without a reply."""

    snapshot_id: str
    published: Published
    items: int
    unanswered: int

    def require_whole(self, run_id: str) -> None:
        """Raise RescoreError where rows are in quarantine."""
        if lost := self.published.quarantined:
            raise RescoreError(
                f"{count_of(lost, 'row')} of the run {run_id} could not be scored again, so its metrics lack what they "
                "say: `select reason from quarantine` says why"
            )


def rescore(lake: Lake, run_id: str, configuration: Configuration) -> Rescored:
    """Derive the rows and the snapshot of a run again. No model is called.

    Raises UsageError where there is no such run, LakeError where none of its items is answered, none is scored, or the
    lake is not writable.
    """
    run = run_row(lake, run_id)
    require_write_access(lake)
    context = RunContext(run_id, run["suite"], lake, configuration)
    items = _items(lake, run)
    index = LedgerIndex.read(lake)
    if run["origin"] == "import":
        answered = _recorded(items, index)
    else:
        conversations = [
            Conversation(item, given_by=(row["endpoint"], row["judge_endpoint"] or row["endpoint"]))
            for item, row in items
        ]
        replay = replay_from_ledger(context, conversations, index)
        answered, unknown = replay.ended, {*map(id, replay.unanswered)}
        strange = [pair for pair, each in zip(items, conversations, strict=True) if id(each) in unknown]
        if strange:
            answered += replay_from_ledger(context, _as_asked(context, strange, index), index).ended
        _set_fallbacks(context, answered)
    if not answered:
        raise LakeError(f"the ledger holds no reply to any of the {len(items)} items of the run {run_id}")
    origin = "import" if run["origin"] == "import" else "call"
    published = publish_conversations(context, answered, origin) + derive(context, origin)
    if published.quarantined and published.landed == Landed():
        raise LakeError(
            f"no row of the run {run_id} could be scored again, and its rows stand as they were: "
            "`select reason from quarantine` says why"
        )
    if given := criteria_of(context, {item.prompt_type for item, _ in items}):
        amended(lake, run_id, parameters=json.dumps({**json.loads(run["parameters"]), **given}))
    cover_again(lake, context.suite, run)
    asked = (
        len(items) if run["origin"] == "import" else run["items"]
    )  # a run that was cut off has fewer in its manifest
    unanswered = asked - len(answered)
    warnings = [f"{unanswered} items are missing: the ledger has no reply to them"] if unanswered else []
    snapshot_id = measure(context, warnings)
    amended(lake, run_id, snapshot_id=snapshot_id)
    return Rescored(snapshot_id, published, asked, unanswered)


def _set_fallbacks(context: RunContext, conversations: Sequence[Conversation]) -> None:
    """Set from earlier rows in whose place a fallback judged."""
    results = context.suite.results
    if FALLBACK_FOR not in results.column:
        return
    rows = context.lake.frame(results).filter(pl.col(FALLBACK_FOR).is_not_null()).select(*ITEM, FALLBACK_FOR)
    places = {row[:-1]: row[-1] for row in rows.unique().collect().iter_rows()}
    for each in conversations:
        item = each.item
        key = item.sample.sample_hash, item.model, item.judge, item.prompt_type, item.replicate
        each.fallback_for = places.get(key)


def _items(lake: Lake, run: Mapping[str, Any]) -> list[tuple[Item, Mapping[str, Any]]]:
    """Read the run's items with their manifest rows; items derived from others (a panel's) are left to `derive`."""
    manifest = lake.frame(RUN_ITEMS).filter(pl.col("run_id") == run["run_id"]).collect()
    asked = manifest.filter(pl.col("judge").is_null() | pl.col("judge").is_in(run["judges"]))
    versions = manifest["dataset_version"].unique().to_list()
    samples = lake.frame(SAMPLES).filter(pl.col("dataset_version").is_in(versions)).collect()
    by_hash = {row["sample_hash"]: sample_of(row) for row in samples.iter_rows(named=True)}
    return [
        (Item(by_hash[row["sample_hash"]], row["model"], row["judge"], row["prompt_type"], row["replicate"]), row)
        for row in asked.sort("item_id").iter_rows(named=True)
        if row["sample_hash"] in by_hash
    ]


def _as_asked(
    context: RunContext, items: Sequence[tuple[Item, Mapping[str, Any]]], index: LedgerIndex
) -> list[Conversation]:
    """Build the conversations of which a request has changed, from the requests in the ledger."""
    begun = _recorded(items, index)
    hashes = {conversation.answered[-1].prompt_hash for conversation in begun}
    calls = context.lake.frame(CALLS).filter(pl.col("prompt_hash").is_in(sorted(hashes)))
    asked = dict(calls.select("prompt_hash", "request").unique("prompt_hash").collect().iter_rows())

    def after(before: Mapping[str, Any]) -> Converse:
        def converse(item: Item, answered: Sequence[Exchange], options: Options) -> Request | None:
            request = context.suite.conversation.next_request(item, answered, options)
            goes_on = request and context.configuration.real_model(request.model) == before["model"]
            return going_on(request, before) if request and goes_on else request

        return converse

    return [
        replace(each, given_by=("", last.endpoint), converse=after(json.loads(asked[last.prompt_hash])))
        for each in begun
        for last in each.answered[-1:]
    ]


def _recorded(items: Sequence[tuple[Item, Mapping[str, Any]]], index: LedgerIndex) -> list[Conversation]:
    """Build imported conversations: their requests were never rendered; the manifest says which replies are theirs."""
    asked = [[key_of(row, call) for call in (SUBJECT_CALL, JUDGE_CALL) if _names(row, call)] for _, row in items]
    replies = index.fetch([key for keys in asked for key in keys])
    return [
        Conversation(item, keys[0].prompt_hash, [exchange_of(replies[key]) for key in keys])
        for (item, _), keys in zip(items, asked, strict=True)
        if all(key in replies for key in keys)
    ]


def _names(row: Mapping[str, Any], call: Mapping[str, str]) -> bool:
    """Tell whether a row of the manifest names a call, and not the stand-in where there was nothing to judge."""
    return row[call["prompt_hash"]] not in (None, "", unjudged_hash(row["prompt_hash"], row["judge"] or ""))
