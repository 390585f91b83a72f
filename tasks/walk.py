"""Walk: execute the conversations of a run, with a few batches of every model in flight."""

import queue
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from prefect.exceptions import Pause
from prefect.futures import PrefectFuture

from evalake.core.errors import LakeError
from evalake.models.failures import OTHERS_MAY_ANSWER
from evalake.models.request import Failure
from evalake.sdk import Item
from evalake.storage.ledger import Key, LedgerIndex, index_since, newest_index
from evalake.tasks.batch import Batch, BatchIncompleteError, call_batch, replay_batch
from evalake.tasks.converse import Conversation, Replay, refused, replay_from_ledger
from evalake.tasks.failures import failure_of
from evalake.tasks.jobs import Jobs
from evalake.tasks.plan import cut_batches, list_planned, segments
from evalake.tasks.preflight import Plan
from evalake.tasks.runtime import progress, runs
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.resources import RunOverError, is_over, stop_calls
from evalake.tasks.runtime.runner import cluster_errors, processes

# For each model and each process that calls: the next ones have begun when the last calls of one are slow.
BATCHES_IN_FLIGHT = 3


def walk(
    context: RunContext, plan: Plan, take: Callable[[Sequence[Conversation]], None], jobs: Jobs | None = None
) -> None:
    """Execute every item of the plan, from the ledger or by calls, as far as it does not wait for `jobs`.

    `take` gets the conversations that have ended, from the ledger or by calls. Items whose request another sample's
    item is already asking are not asked beside it: they follow in a second pass, and find the reply in the ledger.
    Raises ClusterError where processes that call batches are lost.
    """
    with cluster_errors():
        _Walk(context, plan, take, jobs).run()


@dataclass(frozen=True)
class _Submitted:
    batch: Batch
    stream: str
    future: PrefectFuture[Any]


class _Walk:
    def __init__(
        self, context: RunContext, plan: Plan, take: Callable[[Sequence[Conversation]], None], jobs: Jobs | None
    ) -> None:
        self._context, self._plan, self._take_ended, self._jobs = context, plan, take, jobs
        self._ledger_id, self._version, self._planned = newest_index(context.lake)
        self._asking: dict[tuple[str, int], str] = {}  # first request under way to the sample whose item asks it
        self._late: list[Item] = []
        self._batches: Counter[str] = Counter()  # of each model
        self._stand_ins: list[Conversation] = []  # with fallbacks of judges whose providers cannot answer
        self._refused: set[str] = set()  # streams whose further calls the run's ceiling forbids

    def run(self) -> None:
        self._pipeline({model: self._first_pass(model) for model in self._plan.models})
        while late := self._late:
            self._late = []
            unanswered = self._routed(self._replay(late, self._now()))
            unanswered.sort(key=lambda conversation: (conversation.first_hash, conversation.item.replicate))
            self._pipeline({"late": self._uncached(self._cut(self._listed(unanswered)))})
            if len(self._late) == len(late):
                break
        while stand_ins := self._stand_ins:
            self._stand_ins = []
            replay = replay_from_ledger(self._context, stand_ins, self._now())
            self._take_ended(replay.ended)
            self._pipeline({"fallback": self._uncached(self._cut(self._listed(replay.unanswered)))})
        if self._jobs is not None:
            self._take_ended(self._jobs.finish())
        if self._late:
            raise LakeError(
                f"the ledger of the lake {self._context.lake.uri} lacks replies to {len(self._late)} items that were "
                "called: run it again, and `evalake check` says whether the table calls is damaged"
            )

    def _first_pass(self, model: str) -> Iterator[Batch]:
        """Yield the batches of one model, planned segment after segment as they are taken."""
        plan = self._plan
        index = self._planned
        for segment in segments(plan.datasets, model, plan.judges, plan.prompt_types, plan.replicates):
            unanswered = self._routed(self._replay(segment, index))
            yield from self._cut(self._listed(self._first_askers(unanswered)))
            index = self._now()

    def _replay(self, items: Sequence[Item], index: LedgerIndex) -> list[Conversation]:
        """Replay items from the ledger; returns those that need calls."""
        replay = replay_from_ledger(self._context, [Conversation(item) for item in items], index)
        progress.advance(self._context.run_id, by=len(replay.ended))
        self._take_ended(replay.ended)
        return replay.unanswered

    def _routed(self, conversations: Sequence[Conversation]) -> list[Conversation]:
        """Send conversations to their batch jobs; returns those to call now, in their order."""
        if self._jobs is None:
            return list(conversations)
        held = [each for each in conversations if each.next_model in self._context.batched]
        to_call, ended = self._jobs.route(self._listed(held))
        progress.advance(self._context.run_id, by=len(ended))
        self._take_ended(ended)
        others = {id(each) for each in held} - {id(each) for each in to_call}
        return [each for each in conversations if id(each) not in others]

    def _listed(self, conversations: Sequence[Conversation]) -> Sequence[Conversation]:
        """Put conversations on the manifest before their first call."""
        list_planned(self._context, conversations, runs.versions_of(self._plan.datasets))
        return conversations

    def _first_askers(self, conversations: Sequence[Conversation]) -> list[Conversation]:
        """Select the conversations whose request is not under way for another sample; the others follow later."""
        first = []
        for conversation in conversations:
            key = (conversation.first_hash, conversation.item.replicate)
            asking = self._asking.setdefault(key, conversation.item.sample.sample_hash)
            if asking == conversation.item.sample.sample_hash:
                first.append(conversation)
            else:
                self._late.append(conversation.item)
        return first

    def _cut(self, conversations: Sequence[Conversation]) -> Iterator[Batch]:
        for batch in cut_batches(conversations, self._plan.configuration.batch_size):
            model = batch[0].item.model
            self._batches[model] += 1
            yield Batch(self._context, batch, self._ledger_id, self._version, f"{model} #{self._batches[model]}")

    def _uncached(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            batch.is_cached = False
            yield batch

    def _pipeline(self, streams: Mapping[str, Iterator[Batch]]) -> None:
        """Keep a few batches of every stream in flight, and hand each over as it ends.

        Raises RunOverError where the run is stopped meanwhile, once no batch of it is left.
        """
        ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        # By number: a future that held its own batch would keep it until the garbage is collected
        under_way: dict[int, _Submitted] = {}
        in_flight: Counter[str] = Counter()
        cut_off: list[Conversation] = []
        numbers = count()

        def fill(stream: str, up_to: int) -> None:
            while not is_over(self._context) and in_flight[stream] < up_to:
                if (batch := next(streams[stream], None)) is None:
                    return
                if stream in self._refused:
                    self._take_ended([refused(conversation) for conversation in batch.conversations])
                    continue
                try:
                    future = call_batch.with_options(task_run_name=batch.name).submit(batch)
                except Pause:  # Prefect has seen before us that the flow run is suspended
                    stop_calls(self._context, "the flow run is suspended")
                    return
                number = next(numbers)
                under_way[number] = _Submitted(batch, stream, future)
                future.add_done_callback(lambda _, number=number: ended.put(number))  # type: ignore[misc]
                in_flight[stream] += 1

        for up_to in range(BATCHES_IN_FLIGHT * processes()):
            for stream in streams:  # in turns, so that no model waits until another has its share
                fill(stream, up_to + 1)
        while in_flight.total():
            done = under_way.pop(ended.get())
            in_flight[done.stream] -= 1
            try:
                self._take(done)
            except (RunOverError, Pause) as error:  # the others are waited for, and nothing is begun any more
                stop_calls(self._context, str(error) or "the flow run is suspended")
                cut_off += done.batch.conversations
            fill(done.stream, BATCHES_IN_FLIGHT * processes())
        if is_over(self._context):
            self._take_ended(replay_from_ledger(self._context, cut_off, self._now()).ended)
            raise RunOverError(f"the run {self._context.run_id} was stopped; what was answered is in the ledger")

    def _stand_in(self, conversation: Conversation) -> Conversation | None:
        """Give an item without a judgement to the next fallback, where its judge's provider cannot answer."""
        context, item = self._context, conversation.item
        asked = conversation.fallback_for or item.judge
        left = () if asked is None else self._plan.fallbacks(asked)
        place = 0 if conversation.fallback_for is None or item.judge not in left else left.index(item.judge) + 1
        if place >= len(left) or not conversation.failed or failure_of(conversation).kind not in OTHERS_MAY_ANSWER:
            return None
        by_judge = len(conversation.answered) > 1 or not context.suite.conversation.asks_subject
        scored = context.suite.scoring.score(item, conversation.answered, context.options)
        if not by_judge or scored.get(context.suite.results.table):
            return None
        return Conversation(replace(item, judge=left[place]), fallback_for=asked)

    def _now(self) -> LedgerIndex:
        return index_since(self._context.lake, self._ledger_id, self._version)

    def _take(self, done: _Submitted) -> None:
        failures = _failures(done.future)
        if (conversations := done.batch.ended) is not None:
            waiting = [each for each in conversations if each.waits]
            replay = Replay([each for each in conversations if not each.waits], self._routed(waiting))
        else:  # another process called it, or Prefect's cache knows that it was called before
            replay = replay_batch(done.batch, failures, self._now())
            replay = Replay(replay.ended, self._routed(replay.unanswered))
        for conversation in replay.ended:
            if (stand_in := self._stand_in(conversation)) is not None:
                conversation.is_passed_on = True
                self._stand_ins.append(stand_in)
        if any(conversation.is_refused for conversation in replay.ended):
            self._refused.add(done.stream)
        for conversation in done.batch.conversations:
            self._asking.pop((conversation.first_hash, conversation.item.replicate), None)
        asked = sum(not (each.is_refused or each.is_passed_on) for each in replay.ended)
        progress.ended(self._context.run_id, done.batch.name, asked)
        self._take_ended(replay.ended)
        self._late += [conversation.item for conversation in replay.unanswered]


def _failures(future: PrefectFuture[Any]) -> Mapping[Key, Failure]:
    """Find the calls that a batch gave up on. Any other failure of the batch is raised."""
    outcome = future.result(raise_on_failure=False)
    if isinstance(outcome, BatchIncompleteError):
        return outcome.failures
    if isinstance(outcome, BaseException):
        raise outcome
    return {}
