"""Walk: every item of a run to the end of its conversation, a few batches of every model in flight at a time."""

import queue
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefect.futures import PrefectFuture

from contracts.tables import CALLS
from storage.ledger import LedgerIndex, shared_index
from suites.base import Item
from tasks import runs
from tasks.arguments import as_it_is
from tasks.batch import Answers, Batch, BatchIncompleteError, call_batch, with_answers
from tasks.collect import Collector
from tasks.context import RunContext
from tasks.converse import Dialogue, settle
from tasks.plan import cut_batches, segments, write_manifest
from tasks.preflight import Plan

BATCHES_IN_FLIGHT = 3  # for each model: the next ones have begun when the last calls of one are slow


def walk(context: RunContext, plan: Plan, collector: Collector) -> None:
    """Answer every item of the plan, from the ledger or by calls, and hand it to the collector.

    Items whose request another sample's item is already asking are not asked beside it: they follow in a second
    pass, and find the reply in the ledger.
    """
    version = context.lake.ensure(CALLS).version()
    index = shared_index(context.lake.uri, tuple(sorted(context.lake.storage_options.items())), version)
    late: list[Item] = []
    _pipeline({model: _first_pass(context, plan, model, index, collector, late) for model in plan.models}, collector)
    if late:
        index = LedgerIndex.read(context.lake)
        unsettled = _settle(context, plan, late, index, collector)
        unsettled.sort(key=lambda dialogue: (dialogue.first_hash, dialogue.item.replicate))
        _pipeline({"late": _batches(context, plan, unsettled, collector)}, collector)


def _first_pass(
    context: RunContext, plan: Plan, model: str, index: LedgerIndex, collector: Collector, late: list[Item]
) -> Iterator[Batch]:
    """The batches of one model, planned segment after segment as they are taken."""
    for segment in segments(plan.datasets, model, plan.judges, plan.prompt_types, plan.order.replicates):
        unsettled = _settle(context, plan, segment, index, collector)
        yield from _batches(context, plan, collector.first_askers(unsettled, late), collector)


def _settle(
    context: RunContext, plan: Plan, items: Sequence[Item], index: LedgerIndex, collector: Collector
) -> list[Dialogue]:
    """Settle items from the ledger, and put those that need calls on the manifest; returns these."""
    dialogues = [Dialogue(item) for item in items]
    unsettled = settle(context, dialogues, index)
    write_manifest(context, unsettled, runs.versions_of(plan.datasets))
    collector.add_settled(dialogues, unsettled)
    return unsettled


def _batches(context: RunContext, plan: Plan, dialogues: Sequence[Dialogue], collector: Collector) -> Iterator[Batch]:
    ledger = context.lake.open(CALLS)
    for batch in cut_batches(dialogues, plan.configuration.batch_size):
        model = batch[0].item.model
        name = f"{model} #{collector.next_number(model)}"
        yield Batch(context, batch, str(ledger.metadata().id), ledger.version(), name)


@dataclass(frozen=True)
class _Submitted:
    batch: Batch
    stream: str
    future: PrefectFuture[Any]


def _pipeline(streams: Mapping[str, Iterator[Batch]], collector: Collector) -> None:
    """Keep a few batches of every stream in flight, and collect each as it ends."""
    ended: queue.SimpleQueue[_Submitted] = queue.SimpleQueue()

    def submit_next(stream: str) -> int:
        batch = next(streams[stream], None)
        if batch is None:
            return 0
        future = call_batch.with_options(task_run_name=batch.name).submit(as_it_is(batch))
        submitted = _Submitted(batch, stream, future)
        future.add_done_callback(lambda _: ended.put(submitted))
        return 1

    in_flight = sum(submit_next(stream) for _ in range(BATCHES_IN_FLIGHT) for stream in streams)
    while in_flight:
        done = ended.get()
        collector.add(with_answers(done.batch, _answers(done.future)))
        in_flight += submit_next(done.stream) - 1


def _answers(future: PrefectFuture[Any]) -> Answers:
    """What a batch answered, whether all of it or not. Any other failure of the batch is raised."""
    outcome = future.result(raise_on_failure=False)
    if isinstance(outcome, BatchIncompleteError):
        return outcome.answers
    if isinstance(outcome, BaseException):
        raise outcome
    answers: Answers = outcome
    return answers
