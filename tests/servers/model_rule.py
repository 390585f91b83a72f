"""What the model server is told to answer: a rule."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Rule:
    """What requests of a kind are answered. Later rules win over earlier ones.

    `faults` are played in order for each distinct prompt, each as often as its `times` says (0: for ever); then the
    reply is given. A fault is a mapping with `kind` (a key of FAULTS), `times` (default 1) and what its kind reads.
    """

    model: str | None = None  # the model's name as the server sees it (without provider prefix); None: any
    contains: str | None = None  # text that some message holds; None: any
    reply: str | Callable[[Messages], str] | None = "ok"
    latency: float = 0.0  # seconds before the answer; it comes at once where a later rule answers, too
    until: Callable[[], bool] = lambda: False  # … or where this is true
    pause: float = 0.0  # seconds before each piece of an answer that is asked for in pieces
    pieces: int = 4  # in which its text comes then
    finish_reason: str = "stop"
    usage: Mapping[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    )
    message: Mapping[str, Any] = field(default_factory=dict)  # further fields of the reply's message
    faults: tuple[Mapping[str, Any], ...] = ()

    def matches(self, model: str, messages: Messages) -> bool:
        """Whether this rule answers such a request."""
        if self.model is not None and self.model != model:
            return False
        return self.contains is None or any(self.contains in str(message.get("content")) for message in messages)
