"""The Prefect task that makes calls: one batch of items, cached by content, retried where the machine failed."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from prefect import task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE, CachePolicy
from prefect.context import TaskRunContext
from typing_extensions import override

from evalake.contracts.tables import CALLS
from evalake.core.errors import EvalakeError, LakeError
from evalake.core.hashing import content_hash
from evalake.models.endpoints import endpoint_of
from evalake.models.request import Failure
from evalake.storage.lake import Lake
from evalake.storage.ledger import Key, LedgerIndex, index_since
from evalake.tasks.call import Claimed, call
from evalake.tasks.converse import Conversation, Replay, given_up, next_request, replay_from_ledger
from evalake.tasks.failures import FailureCounter, failure_of
from evalake.tasks.runtime import progress
from evalake.tasks.runtime.artifacts import tag_task_run
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.logs import redact_logs, show_in_prefect
from evalake.tasks.runtime.resources import RunOverError
from evalake.tasks.runtime.runner import stop_dask_profiler
from evalake.tasks.runtime.suspension import stopping_with_flow_run

logger = logging.getLogger("evalake.batches")

MOST_LOGGED = 10  # failed calls of a batch whose attempts are lines of the log

RESULT_VERSION = 2
"""Changes with the result of a batch, so that older results in Prefect's cache are ignored."""


class BatchIncompleteError(EvalakeError):
    """Some calls of a batch have failed. The ledger has the replies of the others.

    It is an error, not a result, so that the batch is never served from Prefect's cache and shows as failed.

    Attributes:
        failures: The failure of each call, by its key.
    """

    def __init__(self, message: str, failures: Mapping[Key, Failure]) -> None:
        super().__init__(message, failures)
        self.failures = failures

    def __str__(self) -> str:
        return str(self.args[0])


class Batch:
    """Conversations that need calls, the ledger's version at planning, and a name for people.

    The plan found no reply to the next call of each in the ledger.

    Not a dataclass, which Prefect would search for futures, and which takes longer than the task itself.
    """

    def __init__(
        self, context: RunContext, conversations: Sequence[Conversation], ledger_id: str, ledger_version: int, name: str
    ) -> None:
        self.context = context
        self.conversations = conversations
        self.ledger_id = ledger_id
        self.ledger_version = ledger_version
        self.name = name
        self.is_cached = True
        """Whether Prefect's cache may answer. It may not where the ledger lacks a reply, as after a restore."""
        self.ended: Sequence[Conversation] | None = None
        """Where its calls were made in this process: how its conversations ended."""

    def judged_by(self, judge: str) -> str:
        """Name the part of it that one judge answers."""
        return f"judge {judge} on {self.name}"

    @property
    def content_hash(self) -> str:
        """The hash of calls, models and ledger, without time and run."""
        asked = map(_content, self.conversations)
        return content_hash(
            [RESULT_VERSION, self.ledger_id, self.context.suite_name, dict(self.context.options), *asked]
        )


class BatchContentPolicy(CachePolicy):
    """Keys a batch on its content, and on nothing that differs between processes."""

    @override
    def compute_key(
        self, task_ctx: TaskRunContext, inputs: dict[str, Any], flow_parameters: dict[str, Any], **kwargs: Any
    ) -> str | None:
        batch = inputs.get("batch")
        return batch.content_hash if isinstance(batch, Batch) and batch.is_cached else None


def _machine_failed(task: Any, run: Any, state: Any) -> bool:
    """Tell whether to retry a failed batch.

    A retry does not help where its calls had their retries, its run is over, or the lake stores no reply.
    """
    known = BatchIncompleteError, RunOverError, LakeError
    return not isinstance(state.data, known) and not any(kind.__name__ in (state.message or "") for kind in known)


@task(
    name="call-batch",
    cache_policy=BatchContentPolicy(),
    cache_expiration=timedelta(days=1),
    persist_result=True,
    result_serializer="json",
    cache_result_in_memory=False,  # which would keep every batch's result to the end of the run
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=_machine_failed,
)
def call_batch(batch: Batch) -> int:
    """Make the calls of a batch, in whichever process.

    Returns:
        The number of conversations that ended. Prefect stores this result, so it has no replies.

    Raises:
        BatchIncompleteError: Some calls have failed.
        RunOverError: The run was stopped.
        LakeError: The ledger cannot be read or written.
    """
    redact_logs()
    show_in_prefect()
    stop_dask_profiler()
    model = batch.conversations[0].item.model
    tag_task_run(batch.context.suite_name, model)
    with batch.context.scope(f"batch {batch.name}", batch=batch.name, model=model):
        return _answer(batch)


def _answer(batch: Batch) -> int:
    context = batch.context
    require_ledger(context.lake, batch.ledger_id)
    conversations = [each.again() for each in batch.conversations]
    require_endpoints(context, conversations)
    to_call: Sequence[Conversation] = conversations

    def advance() -> None:
        progress.advance(context.run_id, batch.name)

    with stopping_with_flow_run(context, _flow_run_id()):
        with Claimed(context, conversations) as claimed:
            # One scan of the ledger as this process first saw it for the plan serves all its batches.
            index = index_since(context.lake, batch.ledger_id, batch.ledger_version)
            # Replies may have come since the plan, from other runs or this batch's first attempt.
            if index.known([each.next_key for each in conversations]):
                to_call = replay_from_ledger(context, conversations, index).unanswered
                claimed.keep(to_call)
            for _ in range(len(conversations) - len(to_call)):
                advance()
            call(context, to_call, index, claimed=claimed, on_end=advance, turn="subject")
        for judge, theirs in _by_judge(context, to_call).items():
            part = Batch(context, theirs, batch.ledger_id, batch.ledger_version, batch.judged_by(judge))
            call_judge.with_options(task_run_name=part.name)(part, judge, advance)
    _show_counts(batch, conversations)
    batch.ended = conversations
    if failed := [conversation for conversation in conversations if conversation.failed]:
        counter = FailureCounter(context)
        for conversation in failed:
            counter.add(conversation)
        failures = {
            Key(last.prompt_hash, each.item.replicate, last.endpoint): failure_of(each)
            for each in failed
            if (last := each.answered[-1])
        }
        raise BatchIncompleteError(f"{len(failed)} of {len(conversations)} calls were given up on: {counter}", failures)
    logger.info("%d items answered", len(conversations))
    return len(conversations)


@task(name="call-judge", cache_policy=NO_CACHE, persist_result=False)
def call_judge(batch: Batch, judge: str, on_end: Callable[[], None]) -> int:
    """Make the calls of one judge in a batch whose subjects have answered; returns how many conversations ended."""
    context = batch.context
    tag_task_run(context.suite_name, judge)
    index = index_since(context.lake, batch.ledger_id, batch.ledger_version)
    call(context, batch.conversations, index, on_end=on_end, turn="judge")
    return len(batch.conversations)


def _by_judge(context: RunContext, conversations: Sequence[Conversation]) -> Mapping[str, list[Conversation]]:
    """Group the conversations that a judge goes on with."""
    groups: dict[str, list[Conversation]] = {}
    for each in conversations:
        if each.item.judge is not None and next_request(context, each) is not None:
            groups.setdefault(each.item.judge, []).append(each)
    return groups


def _show_counts(batch: Batch, conversations: Sequence[Conversation]) -> None:
    """Show in Prefect what came of a batch's calls, by task run; and log the attempts of those that failed."""
    if _flow_run_id() is None:
        return
    counted: dict[tuple[str, str], Counter[str]] = {}
    failed: list[tuple[str, Failure]] = []
    seen: set[Key] = set()  # an audit that several judges see is one call
    asks_subject = batch.context.suite.conversation.asks_subject
    for each in conversations:
        for number, exchange in enumerate(each.answered):
            key = Key(exchange.prompt_hash, each.item.replicate, exchange.endpoint)
            if key in seen:
                continue
            seen.add(key)
            judge = each.item.judge if number > 0 or not asks_subject else None
            who = (batch.judged_by(judge), judge) if judge else (batch.name, each.item.model)
            outcome = exchange.outcome
            word = outcome.kind if isinstance(outcome, Failure) else "ledger" if exchange.from_ledger else "answered"
            counted.setdefault(who, Counter())[word] += 1
            if isinstance(outcome, Failure) and outcome.attempts:
                failed.append((who[1], outcome))
    kinds = sorted({word for words in counted.values() for word in words} - {"answered", "ledger"})
    rows = [
        {"task run": run, "model": name, **{word: words[word] for word in ("answered", "ledger", *kinds)}}
        for (run, name), words in counted.items()
    ]
    place = re.sub(r"[^a-z0-9]+", "-", batch.name.lower()).strip("-")
    create_table_artifact(rows, key=f"batch-{batch.context.run_id}-{place}", description=f"Calls of {batch.name}")
    for name, failure in failed[:MOST_LOGGED]:
        for number, words in enumerate(failure.tried, start=1):
            logger.warning("%s, attempt %d of %d: %s", name, number, failure.attempts, words)
    if len(failed) > MOST_LOGGED:
        logger.warning("%d further calls failed; the table call_failures has them all", len(failed) - MOST_LOGGED)


def _flow_run_id() -> UUID | None:
    task_context = TaskRunContext.get()
    return task_context.task_run.flow_run_id if task_context else None


def replay_batch(batch: Batch, failures: Mapping[Key, Failure], index: LedgerIndex) -> Replay:
    """Replay the conversations of a finished batch from the ledger.

    Args:
        batch: The finished batch.
        failures: Failed calls; each ends the conversations that need it.
        index: The index of the ledger as it is now.

    Returns:
        The conversations. The ledger lacks a reply to the unanswered ones, which are asked again.
    """
    conversations = [each.again() for each in batch.conversations]
    replay = replay_from_ledger(batch.context, conversations, index, own_replies=True)
    unanswered = []
    for conversation in replay.unanswered:
        if failure := failures.get(conversation.next_key):
            conversation.answered.append(given_up(conversation, failure))
            replay.ended.append(conversation)
        else:
            unanswered.append(conversation)
    return Replay(replay.ended, unanswered)


def require_ledger(lake: Lake, ledger_id: str) -> None:
    """Raise LakeError where this process finds another ledger than the plan of the run."""
    if _ledger_id(lake) != ledger_id:
        _ledger_id.cache_clear()  # the lake may have been deleted and created again
    if _ledger_id(lake) != ledger_id:
        raise LakeError(
            f"this worker does not find the lake of the run at {lake.uri}: use a path or URI that all workers share, "
            "on object storage or a shared folder"
        )


def require_endpoints(context: RunContext, conversations: Sequence[Conversation]) -> None:
    """Raise LakeError where this process would call a model at another endpoint than the plan of the run."""
    for model, planned in {(each.next_model, each.next_endpoint) for each in conversations if each.next_model}:
        if (here := endpoint_of(model, context.configuration).name) != planned:
            raise LakeError(
                f"this worker calls {model} at the endpoint {here}, but the run was planned for {planned}: give all "
                "workers the same API base"
            )


@lru_cache(maxsize=4)
def _ledger_id(lake: Lake) -> str | None:
    return str(lake.open(CALLS).metadata().id) if lake.exists(CALLS) else None


def _content(conversation: Conversation) -> list[Any]:
    item = conversation.item
    # With the next request, too: where a judge is asked otherwise than before, the subject has answered already.
    asked = [conversation.first_hash, *conversation.next_key, conversation.next_revision]
    return [*asked, item.sample.sample_hash, item.model, item.judge, item.prompt_type, item.replicate]
