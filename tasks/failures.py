"""Failures: calls that were given up on become rows of `call_failures`, and are asked again by whoever comes next."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from contracts.arrow import conform
from contracts.tables import CALL_FAILURES
from providers.request import Failure
from storage.landing import land
from tasks.context import RunContext
from tasks.converse import Dialogue


def failure_of(dialogue: Dialogue) -> Failure:
    """The failure that a failed dialogue ended with."""
    outcome = dialogue.answered[-1].outcome
    assert isinstance(outcome, Failure)
    return outcome


def land_failures(context: RunContext, dialogues: Sequence[Dialogue]) -> None:
    """Land a row for each call that ended one of the dialogues, once for each call however many share it."""
    rows = {
        (dialogue.answered[-1].prompt_hash, dialogue.item.replicate): _row(context, dialogue)
        for dialogue in dialogues
        if dialogue.failed
    }
    if rows:
        land(context.lake, CALL_FAILURES, conform(list(rows.values()), CALL_FAILURES))


def _row(context: RunContext, dialogue: Dialogue) -> dict[str, Any]:
    failure = failure_of(dialogue)
    judged = len(dialogue.answered) > 1 or not context.suite.calls_subject
    return {
        "run_id": context.run_id,
        "prompt_hash": dialogue.answered[-1].prompt_hash,
        "replicate": dialogue.item.replicate,
        "model": dialogue.item.judge if judged else dialogue.item.model,
        "kind": failure.kind,
        "message": failure.message,
        "attempts": failure.attempts,
        "latency_ms": failure.latency_ms,
        "failed_at": datetime.now(UTC),
    }
