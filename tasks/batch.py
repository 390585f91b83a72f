"""The Prefect task that makes calls: one batch of dialogues, cached by content, retried where the machine failed."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import lru_cache
from typing import Any

from prefect import task
from prefect.cache_policies import CachePolicy
from prefect.context import TaskRunContext

from contracts.errors import EvalakeError, LakeError
from contracts.hashing import content_hash
from contracts.tables import CALLS
from providers.request import Failure, Reply
from storage.lake import Lake
from storage.ledger import LedgerIndex, shared_index
from suites.base import Answered
from tasks import progress
from tasks.context import RunContext
from tasks.converse import Dialogue, call
from tasks.logs import redact_logs
from tasks.resources import RunOverError
from tasks.runner import spare_profiler

Answers = list[list[dict[str, Any]]]

logger = logging.getLogger("evalake.batches")


class BatchIncompleteError(EvalakeError):
    """Some calls of a batch were given up on. What was answered is in the ledger, and in `answers`.

    It is an error, not a result, so that the batch is never served from Prefect's cache and shows as failed.
    """

    def __init__(self, message: str, answers: Answers) -> None:
        super().__init__(message, answers)
        self.answers = answers

    def __str__(self) -> str:
        return str(self.args[0])


class Batch:
    """Dialogues to be walked to their end, the lake's ledger as planning found it, and a name for people.

    Not a dataclass, which Prefect would search for futures, and which takes longer than the task itself.
    """

    def __init__(
        self, context: RunContext, dialogues: Sequence[Dialogue], ledger_id: str, ledger_version: int, name: str
    ) -> None:
        self.context = context
        self.dialogues = dialogues
        self.ledger_id = ledger_id
        self.ledger_version = ledger_version
        self.name = name

    @property
    def content_hash(self) -> str:
        """What is asked, of whom, for which ledger: never when or by which run."""
        return content_hash(
            [self.ledger_id, self.context.suite_name, dict(self.context.options), *map(_content, self.dialogues)]
        )


class BatchContentPolicy(CachePolicy):
    """Keys a batch on its content, and on nothing that differs between processes."""

    def compute_key(
        self, task_ctx: TaskRunContext, inputs: dict[str, Any], flow_parameters: dict[str, Any], **kwargs: Any
    ) -> str | None:
        batch = inputs.get("batch")
        return batch.content_hash if isinstance(batch, Batch) else None


def _machine_failed(task: Any, run: Any, state: Any) -> bool:
    """Whether a batch that raised should be tried again.

    Not where its calls had their retries, its run is over, or the lake keeps no reply (a full disk, say): what is asked
    then is asked for nothing.
    """
    known = BatchIncompleteError, RunOverError, LakeError
    return not isinstance(state.data, known) and not any(kind.__name__ in (state.message or "") for kind in known)


@task(
    name="call-batch",
    cache_policy=BatchContentPolicy(),
    cache_expiration=timedelta(days=1),
    persist_result=True,
    result_serializer="json",
    cache_result_in_memory=False,  # which would keep every batch's answers to the end of the run
    retries=2,
    retry_delay_seconds=[1, 5],
    retry_condition_fn=_machine_failed,
)
def call_batch(batch: Batch) -> Answers:
    """Make the calls of a batch, in whichever process. Raises BatchIncompleteError where some were given up on."""
    redact_logs()
    spare_profiler()
    with batch.context.scope(f"batch {batch.name}", batch=batch.name, model=batch.dialogues[0].item.model):
        return _answer(batch)


def _answer(batch: Batch) -> Answers:
    context = batch.context
    require_ledger(context.lake, batch.ledger_id)
    dialogues = [Dialogue(d.item, d.first_hash, list(d.answered)) for d in batch.dialogues]
    planned = _planned_index(batch)
    # What came in since: from other runs, or from this batch's own first attempt, whose process may have been killed.
    newer = LedgerIndex.read(context.lake, known=planned.files)
    call(context, dialogues, planned, newer, on_end=lambda: progress.advance(context.run_id, batch.name))
    answers = [[_as_json(answer) for answer in dialogue.answered] for dialogue in dialogues]
    failed = [dialogue.answered[-1].outcome for dialogue in dialogues if dialogue.failed]
    logger.info("batch ended: %d items, %d of their calls given up on", len(dialogues), len(failed))
    if failed:
        kinds = sorted({outcome.kind for outcome in failed if isinstance(outcome, Failure)})
        raise BatchIncompleteError(
            f"{len(failed)} of {len(dialogues)} calls were given up on: {', '.join(kinds)}", answers
        )
    return answers


def with_answers(batch: Batch, answers: Answers) -> list[Dialogue]:
    """The batch's dialogues with what came back for them."""
    return [
        Dialogue(dialogue.item, dialogue.first_hash, [_from_json(answer) for answer in given])
        for dialogue, given in zip(batch.dialogues, answers, strict=True)
    ]


def require_ledger(lake: Lake, ledger_id: str) -> None:
    """Raise LakeError where this process finds another ledger at the lake's place than the one that was planned for."""
    if _ledger_id(lake.uri, _options(lake)) != ledger_id:
        _ledger_id.cache_clear()  # the lake that this process knew may have been deleted, and this be the next
    if _ledger_id(lake.uri, _options(lake)) != ledger_id:
        raise LakeError(
            f"this process finds another lake at {lake.uri}, or none, than the run that was planned: name a lake that "
            "all workers reach by one name, on object storage or a shared folder"
        )


@lru_cache(maxsize=4)
def _ledger_id(uri: str, options: tuple[tuple[str, str], ...]) -> str | None:
    lake = Lake(uri, dict(options))
    return str(lake.open(CALLS).metadata().id) if lake.exists(CALLS) else None


def _planned_index(batch: Batch) -> LedgerIndex:
    """The ledger as this process first saw it for the plan; one scan for all its batches."""
    lake = batch.context.lake
    return shared_index(lake.uri, _options(lake), batch.ledger_id, batch.ledger_version)


def _options(lake: Lake) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(lake.storage_options.items()))


def _content(dialogue: Dialogue) -> list[Any]:
    item = dialogue.item
    # With the next request, too: a judge that is asked otherwise than before finds the subject answered already.
    asked = [dialogue.first_hash, dialogue.next_hash]
    return [*asked, item.sample.sample_hash, item.model, item.judge, item.prompt_type, item.replicate]


def _as_json(answer: Answered) -> dict[str, Any]:
    return {**asdict(answer), "failed": isinstance(answer.outcome, Failure)}


def _from_json(answer: Mapping[str, Any]) -> Answered:
    outcome = Failure(**answer["outcome"]) if answer["failed"] else Reply(**answer["outcome"])
    return Answered(answer["prompt_hash"], outcome, answer["from_ledger"])
