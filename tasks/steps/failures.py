"""Failures: calls that were given up on become rows of `call_failures`, and are asked again by whoever comes next."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from contracts.compile.arrow import conform
from contracts.tables import CALL_FAILURES
from core.redaction import redact
from providers.request import Failure
from storage.landing import land
from tasks.runtime.context import RunContext
from tasks.steps.converse import Conversation

LONGEST_REASON = 200


def failure_of(dialogue: Conversation) -> Failure:
    """The failure that a failed dialogue ended with."""
    outcome = dialogue.answered[-1].outcome
    assert isinstance(outcome, Failure)
    return outcome


def land_failures(context: RunContext, dialogues: Sequence[Conversation]) -> None:
    """Land a row for each call that ended one of the dialogues, once for each call however many share it."""
    rows = {
        (dialogue.answered[-1].prompt_hash, dialogue.item.replicate): _row(context, dialogue)
        for dialogue in dialogues
        if dialogue.failed and not dialogue.is_refused
    }
    if rows:
        land(context.lake, CALL_FAILURES, conform(list(rows.values()), CALL_FAILURES))


class FailureCounter:
    """Counts failures by model and kind, and keeps each model's first reason."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._kinds: dict[str, Counter[str]] = {}
        self._reasons: dict[str, str] = {}

    def add(self, dialogue: Conversation) -> None:
        """Count the failure that a failed dialogue ended with."""
        failure, model = failure_of(dialogue), _called(self._context, dialogue)
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


def counted(counts: Counter[str]) -> str:
    """Counts in words, the largest first."""
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


def _called(context: RunContext, dialogue: Conversation) -> str:
    """The model whose call ended the dialogue: the judge, or the subject."""
    judged = len(dialogue.answered) > 1 or not context.suite.calls_subject
    return (dialogue.item.judge or dialogue.item.model) if judged else dialogue.item.model


def _row(context: RunContext, dialogue: Conversation) -> dict[str, Any]:
    failure = failure_of(dialogue)
    return {
        "run_id": context.run_id,
        "prompt_hash": dialogue.answered[-1].prompt_hash,
        "replicate": dialogue.item.replicate,
        "model": _called(context, dialogue),
        "kind": failure.kind,
        "message": failure.message,
        "attempts": failure.attempts,
        "latency_ms": failure.latency_ms,
        "queue_ms": failure.queue_ms,
        "waited_ms": failure.waited_ms,
        "concurrency": failure.concurrency,
        "failed_cost_usd": failure.failed_cost_usd,
        "failed_at": datetime.now(UTC),
    }
