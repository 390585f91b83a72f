"""A request to a model, its identity, and what can come back: a reply, or a failure that says why."""

import hashlib
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any, Literal

from evalake.core.hashing import canonical_json, record

FailureKind = Literal[
    "timeout",
    "connection",
    "rate_limit",
    "server",
    "malformed_response",
    "authentication",
    "not_found",
    "bad_request",
    "context_length",
    "content_policy",
    "circuit_open",
    "model_stopped",
    "budget",
]

EmptyKind = Literal["reasoning_only", "tool_call_only", "refusal", "nothing"]


_FIELDS = frozenset({"model", "messages", "revision"})  # of the canonical JSON, which no parameter stands for
_APART = "parameters."


@lru_cache(maxsize=32)
def _message(*fields: tuple[str, str]) -> bytes:
    """Write the canonical JSON of a message, once for one that many requests share, such as a long system prompt."""
    return canonical_json(dict(fields))


@lru_cache(maxsize=32)
def _begun(before: bytes, *fields: tuple[str, str]) -> "hashlib._Hash":
    """Hash (SHA-256) what stands before the messages and the first one: a copy of it goes on with the others."""
    return hashlib.sha256(before + _message(*fields))


class _Hashed:
    """Where a request keeps its hash."""

    __slots__ = ("_prompt_hash",)
    _prompt_hash: str


@record
class Request(_Hashed):
    """One whole request: the model, the messages, and every parameter that can change the reply.

    `messages` are {"role": …, "content": …} objects in order. Timeouts, retries, API base and keys are no part of it,
    nor are `stream` and `cache_prompt`: an answer is the same however it came.
    """

    model: str
    messages: tuple[Mapping[str, str], ...]
    parameters: Mapping[str, Any]
    revision: str | None = None  # of a model that changed behind its name: part of the identity, and not sent
    stream: bool = field(default=False, compare=False)  # the answer is asked for piece by piece
    cache_prompt: bool = field(default=False, compare=False)  # another turn is likely to begin with the same messages

    @property
    def canonical(self) -> bytes:
        """The canonical JSON of the request (sorted keys, UTF-8, no spaces)."""
        before, after = _around(self)
        return before + b",".join(_message(*message.items()) for message in self.messages) + after

    @property
    def prompt_hash(self) -> str:
        """SHA-256 of the canonical JSON: the identity of the request."""
        try:
            return self._prompt_hash
        except AttributeError:
            self._prompt_hash = self._hashed()
        return self._prompt_hash

    def _hashed(self) -> str:
        if len(self.messages) < 2:  # it shares nothing with others but what is short
            return hashlib.sha256(self.canonical).hexdigest()
        first, *others = self.messages
        before, after = _around(self)
        digest = _begun(before, *first.items()).copy()
        for message in others:
            digest.update(b"," + canonical_json(message))
        digest.update(after)
        return digest.hexdigest()


def _around(request: Request) -> tuple[bytes, bytes]:
    """Write the canonical JSON of a request before its first message, and after its last."""
    if not request.parameters:
        return _plain(request.model, request.revision)
    return _written(request.model, request.revision, request.parameters)


@lru_cache(maxsize=32)
def _plain(model: str, revision: str | None) -> tuple[bytes, bytes]:
    return _written(model, revision, {})


def _written(model: str, revision: str | None, parameters: Mapping[str, Any]) -> tuple[bytes, bytes]:
    others: dict[str, Any] = {_name(name): value for name, value in parameters.items()} | {"model": model}
    if revision is not None:
        others["revision"] = revision
    before = [_field(name, others[name]) + b"," for name in sorted(others) if name < "messages"]
    after = [b"," + _field(name, others[name]) for name in sorted(others) if name > "messages"]
    return b"{" + b"".join(before) + b'"messages":[', b"]" + b"".join(after) + b"}"


def _name(parameter: str) -> str:
    """Name a parameter in the canonical JSON: apart from the fields of a request, whatever it is called."""
    return f"{_APART}{parameter}" if parameter in _FIELDS or parameter.startswith(_APART) else parameter


def parameters_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Select the parameters of a request that its canonical JSON was decoded to, under their own names."""
    return {name.removeprefix(_APART): value for name, value in request.items() if name not in _FIELDS}


def _field(name: str, value: Any) -> bytes:
    return canonical_json(name) + b":" + canonical_json(value)


@record
class Reply:
    """What a model answered. Unknown token counts and costs are None."""

    text: str | None
    finish_reason: str | None = None
    model_reported: str | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None  # from the last byte of the request sent to the last byte of the reply
    attempts: int = 1
    error_kind: str | None = None  # only in recorded results, where no reply came
    queue_ms: float | None = None  # waited for a slot and for the rate, over all attempts
    waited_ms: float | None = None  # paused between attempts
    connect_ms: float | None = None  # got a connection; 0 where one was there
    first_byte_ms: float | None = None  # from the last byte of the request sent to the first byte of the reply
    concurrency: int | None = None  # calls to the provider on their way when the attempt that answered began, with it
    failed_cost_usd: float | None = None  # of attempts before it that failed and stated their usage; None: none did
    reasoning: str | None = None  # what the model thought, where the provider gives it apart from the text
    refusal: str | None = None  # why it refused, where the provider has a field for that
    tool_calls: str | None = None  # JSON: the calls of tools that it answered with

    @property
    def empty_kind(self) -> EmptyKind | None:
        """What a reply without text is; None where it has one."""
        if self.text is not None and self.text.strip():
            return None
        if self.tool_calls is not None:
            return "tool_call_only"
        if self.refusal is not None:
            return "refusal"
        return "reasoning_only" if self.reasoning is not None else "nothing"


@record
class Failure:
    """A call that was given up on: what went wrong, after how many attempts, in the provider's words without keys."""

    kind: FailureKind
    message: str
    attempts: int
    latency_ms: float | None = None
    queue_ms: float | None = None
    waited_ms: float | None = None
    concurrency: int | None = None
    failed_cost_usd: float | None = None  # of attempts that stated their usage; None: none did
