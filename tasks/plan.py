"""Plan: which items a run consists of, written to its manifest before any call is made."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, product
from typing import Any

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import RUN_ITEMS
from evalake.core.configuration import UNKNOWN
from evalake.core.hashing import content_hash
from evalake.sdk import Dataset, Item
from evalake.sdk.results import unjudged_hash
from evalake.storage.landing import land
from evalake.tasks.converse import Conversation
from evalake.tasks.runtime.context import RunContext

SEGMENT_SAMPLES = 10_000  # how much is planned at once: bounds memory, whatever the size of the run


def segments(
    datasets: Sequence[Dataset],
    model: str,
    judges: Sequence[str],
    prompt_types: Sequence[str],
    replicates: Iterable[int],
) -> Iterator[list[Item]]:
    """Yield the items of one model in segments; those of one sample, told apart by their judges, stay together."""
    asking: Sequence[str | None] = judges or [None]
    asked = product(replicates, prompt_types, datasets)
    subjects = ((sample, kind, replicate) for replicate, kind, dataset in asked for sample in dataset.samples)
    while part := list(islice(subjects, SEGMENT_SAMPLES)):
        yield [Item(sample, model, judge, kind, replicate) for sample, kind, replicate in part for judge in asking]


def write_manifest(context: RunContext, conversations: Sequence[Conversation], versions: Mapping[str, str]) -> None:
    """Land the run items of conversations."""
    if rows := [_manifest_row(context, conversation, versions) for conversation in conversations]:
        land(context.lake, RUN_ITEMS, conform(rows, RUN_ITEMS))


def list_planned(context: RunContext, conversations: Sequence[Conversation], versions: Mapping[str, str]) -> None:
    """Land the run items of conversations whose calls are all known, and mark them as listed.

    A judge's call depends on the reply of its subject: where that is new, the item lands with its rows.
    """
    known = [each for each in conversations if each.answered or not _has_judge_call(context, each)]
    write_manifest(context, known, versions)
    for conversation in known:
        conversation.is_listed = True


def cut_batches(conversations: Iterable[Conversation], size: int) -> Iterator[list[Conversation]]:
    """Cut conversations into batches of about `size`; those that share a subject call stay together."""
    batch: list[Conversation] = []
    for _, group in groupby(
        conversations, key=lambda conversation: (conversation.first_hash, conversation.item.replicate)
    ):
        batch.extend(group)
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def _manifest_row(context: RunContext, conversation: Conversation, versions: Mapping[str, str]) -> dict[str, Any]:
    item = conversation.item
    identity = [item.sample.sample_hash, item.model, item.judge, item.prompt_type, item.replicate]
    return {
        "run_id": context.run_id,
        "item_id": content_hash(identity),
        "suite": context.suite.name,
        "dataset": item.sample.dataset,
        "dataset_version": versions[item.sample.dataset],
        "sample_id": item.sample.sample_id,
        "sample_hash": item.sample.sample_hash,
        "model": item.model,
        "judge": item.judge,
        "prompt_type": item.prompt_type,
        "replicate": item.replicate,
        "prompt_hash": conversation.first_hash,
        "endpoint": conversation.first_endpoint,
        **dict(zip(("judge_hash", "judge_endpoint"), _judge_call(context, conversation), strict=True)),
    }


def _judge_call(context: RunContext, conversation: Conversation) -> tuple[str, str] | tuple[None, None]:
    """Find hash and endpoint of the judge call; stand-ins where the model gave nothing to judge."""
    if not _has_judge_call(context, conversation) or not conversation.answered:
        return None, None
    if len(conversation.answered) > 1:
        return conversation.answered[1].prompt_hash, conversation.answered[1].endpoint
    ended = conversation.failed or conversation.next_hash == conversation.first_hash  # no further call is known
    if ended and not conversation.is_refused:
        return unjudged_hash(conversation.first_hash, conversation.item.judge or ""), UNKNOWN
    if not ended:
        return conversation.next_hash, conversation.next_endpoint
    return None, None


def _has_judge_call(context: RunContext, conversation: Conversation) -> bool:
    """Tell whether a judge is asked in a call of its own, after the subject's."""
    return conversation.item.judge is not None and context.suite.conversation.asks_subject
