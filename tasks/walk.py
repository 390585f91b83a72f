"""Walk: every item of a run to the end of its conversation, a few batches of every model in flight at a time."""

import queue
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from prefect.futures import PrefectFuture

from contracts.tables import CALLS
from storage.ledger import LedgerIndex, shared_index
from suites.base import Item
from tasks import progress, runs
from tasks.batch import Answers, Batch, BatchIncompleteError, call_batch, with_answers
from tasks.context import RunContext
from tasks.converse import Dialogue, settle
from tasks.plan import cut_batches, segments, write_manifest
from tasks.preflight import Plan
from tasks.runner import processes
from tasks.shards import WHOLE, Shard

# For each model and each process that calls: the next ones have begun when the last calls of one are slow.
BATCHES_IN_FLIGHT = 3


class Taker(Protocol):
    """Who takes the dialogues that have ended."""

    def add_settled(self, dialogues: Sequence[Dialogue], unsettled: Sequence[Dialogue]) -> None:
        """Take those of the dialogues that are not among the unsettled: they ended without a call."""

    def add(self, dialogues: Sequence[Dialogue]) -> None:
        """Take dialogues that calls have ended."""


def walk(context: RunContext, plan: Plan, taker: Taker, shard: Shard = WHOLE) -> None:
    """Answer every item of the plan, from the ledger or by calls; by calls only those of the shard.

    Items whose request another sample's item is already asking are not asked beside it: they follow in a second
    pass, and find the reply in the ledger.
    """
    _Walk(context, plan, taker, shard).run()


@dataclass(frozen=True)
class _Submitted:
    batch: Batch
    stream: str
    future: PrefectFuture[Any]


class _Walk:
    def __init__(self, context: RunContext, plan: Plan, taker: Taker, shard: Shard) -> None:
        self._context, self._plan, self._taker, self._shard = context, plan, taker, shard
        ledger = context.lake.ensure(CALLS)
        self._ledger_id, self._version = str(ledger.metadata().id), ledger.version()
        options = tuple(sorted(context.lake.storage_options.items()))
        self._index = shared_index(context.lake.uri, options, self._ledger_id, self._version)
        self._asking: dict[tuple[str, int], str] = {}  # first request to the sample whose item asks it
        self._late: list[Item] = []
        self._batches: Counter[str] = Counter()  # of each model

    def run(self) -> None:
        self._pipeline({model: self._first_pass(model) for model in self._plan.models})
        if self._late:
            unsettled = self._settle(self._late, LedgerIndex.read(self._context.lake))
            unsettled.sort(key=lambda dialogue: (dialogue.first_hash, dialogue.item.replicate))
            self._pipeline({"late": self._cut(unsettled)})

    def _first_pass(self, model: str) -> Iterator[Batch]:
        """The batches of one model, planned segment after segment as they are taken."""
        plan = self._plan
        for segment in segments(plan.datasets, model, plan.judges, plan.prompt_types, plan.order.replicates):
            yield from self._cut(self._first_askers(self._settle(segment, self._index)))

    def _settle(self, items: Sequence[Item], index: LedgerIndex) -> list[Dialogue]:
        """Settle items from the ledger, and put those of the shard that need calls on the manifest; returns these."""
        dialogues = [Dialogue(item) for item in items]
        unsettled = [each for each in settle(self._context, dialogues, index) if self._shard.has(each)]
        write_manifest(self._context, unsettled, runs.versions_of(self._plan.datasets))
        self._taker.add_settled(dialogues, unsettled)
        return unsettled

    def _first_askers(self, dialogues: Sequence[Dialogue]) -> list[Dialogue]:
        """The dialogues whose request no other sample of the run asks for already; the items of others are late."""
        first = []
        for dialogue in dialogues:
            key = (dialogue.first_hash, dialogue.item.replicate)
            asking = self._asking.setdefault(key, dialogue.item.sample.sample_hash)
            if asking == dialogue.item.sample.sample_hash:
                first.append(dialogue)
            else:
                self._late.append(dialogue.item)
        return first

    def _cut(self, dialogues: Sequence[Dialogue]) -> Iterator[Batch]:
        for batch in cut_batches(dialogues, self._plan.configuration.batch_size):
            model = batch[0].item.model
            self._batches[model] += 1
            yield Batch(self._context, batch, self._ledger_id, self._version, f"{model} #{self._batches[model]}")

    def _pipeline(self, streams: Mapping[str, Iterator[Batch]]) -> None:
        """Keep a few batches of every stream in flight, and hand each over as it ends."""
        ended: queue.SimpleQueue[_Submitted] = queue.SimpleQueue()
        in_flight: Counter[str] = Counter()

        def fill(stream: str, up_to: int) -> None:
            while in_flight[stream] < up_to and (batch := next(streams[stream], None)) is not None:
                future = call_batch.with_options(task_run_name=batch.name).submit(batch)
                submitted = _Submitted(batch, stream, future)
                future.add_done_callback(lambda _, submitted=submitted: ended.put(submitted))  # type: ignore[misc]
                in_flight[stream] += 1

        for up_to in range(BATCHES_IN_FLIGHT * processes()):
            for stream in streams:  # in turns, so that no model waits until another has its share
                fill(stream, up_to + 1)
        while in_flight.total():
            done = ended.get()
            self._take(done)
            in_flight[done.stream] -= 1
            fill(done.stream, BATCHES_IN_FLIGHT * processes())

    def _take(self, done: _Submitted) -> None:
        dialogues = with_answers(done.batch, _answers(done.future))
        progress.ended(self._context.run_id, done.batch.name, len(dialogues))
        self._taker.add(dialogues)


def _answers(future: PrefectFuture[Any]) -> Answers:
    """What a batch answered, whether all of it or not. Any other failure of the batch is raised."""
    outcome = future.result(raise_on_failure=False)
    if isinstance(outcome, BatchIncompleteError):
        return outcome.answers
    if isinstance(outcome, BaseException):
        raise outcome
    answers: Answers = outcome
    return answers
