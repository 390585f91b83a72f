"""Requests to models with their identity, replies, and failures."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from evalake.core.hashing import as_utf8, canonical_text, record
from evalake.core.redaction import redact

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


_FIELDS = frozenset({"model", "messages", "revision"})  # of the canonical JSON
_APART = "parameters."


@record
class Request:
    """One whole request: the model, the messages, and every parameter that can change the reply.

    `messages` are {"role": …, "content": …} objects in order. Timeouts, retries, API base and keys are not part of it,
    and `stream` and `cache_prompt` are not part of its identity.
    """

    model: str
    messages: tuple[Mapping[str, str], ...]
    parameters: Mapping[str, Any]
    revision: str | None = None  # tells apart models behind one name: part of the identity, never sent
    stream: bool = field(default=False, compare=False)
    cache_prompt: bool = field(default=False, compare=False)  # the next turn begins with the same messages
    _prompt_hash: str | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def canonical(self) -> bytes:
        """The canonical JSON of the request (sorted keys, UTF-8, no spaces)."""
        fields = {_name(name): canonical_text(value) for name, value in self.parameters.items()}
        fields |= {"model": _text(self.model), "messages": f"[{','.join(map(_message, self.messages))}]"}
        return as_utf8(_object(fields if self.revision is None else {**fields, "revision": _text(self.revision)}))

    @property
    def prompt_hash(self) -> str:
        """SHA-256 of the canonical JSON: the identity of the request."""
        if self._prompt_hash is None:
            object.__setattr__(self, "_prompt_hash", hashlib.sha256(self.canonical).hexdigest())
        assert self._prompt_hash is not None
        return self._prompt_hash


# Requests share most of their texts, like the system's, which take longest: 20 of 25 microseconds a request.
_text = lru_cache(maxsize=64)(canonical_text)


def _message(message: Mapping[str, Any]) -> str:
    texts = {name: _text(value) if isinstance(value, str) else canonical_text(value) for name, value in message.items()}
    return _object(texts)


def _object(fields: Mapping[str, str]) -> str:
    """Build the canonical JSON of an object from that of its fields."""
    return f"{{{','.join(f'{_text(name)}:{fields[name]}' for name in sorted(fields))}}}"


def _name(parameter: str) -> str:
    """Name a parameter in the canonical JSON, distinct from the fields of a request."""
    return f"{_APART}{parameter}" if parameter in _FIELDS or parameter.startswith(_APART) else parameter


def parameters_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Select the parameters of a request from its decoded canonical JSON."""
    return {name.removeprefix(_APART): value for name, value in request.items() if name not in _FIELDS}


@record
class Reply:
    """The reply of a model. Unknown token counts and costs are None."""

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
    error_kind: str | None = None  # of recorded results without a reply
    queue_ms: float | None = None  # waiting for our own limits, over all attempts
    waited_ms: float | None = None  # pauses between attempts
    connect_ms: float | None = None  # until there was a connection; 0 for an open one
    first_byte_ms: float | None = None  # from the last byte of the request sent to the first byte of the reply
    concurrency: int | None = None  # running calls to the provider when the last attempt began, with it
    failed_cost_usd: float | None = None  # of failed attempts that stated their usage; None without any
    reasoning: str | None = None  # where the provider separates it from the text
    refusal: str | None = None  # the provider's own field for it
    tool_calls: str | None = None  # JSON

    @property
    def is_cut_off(self) -> bool:
        """Whether its provider cut it off where it reached the limit of tokens."""
        return (self.finish_reason or "").lower() in ("length", "max_tokens")

    @property
    def empty_kind(self) -> EmptyKind | None:
        """The kind of a reply without text; None with text."""
        if self.text is not None and self.text.strip():
            return None
        if self.tool_calls is not None:
            return "tool_call_only"
        if self.refusal is not None:
            return "refusal"
        return "reasoning_only" if self.reasoning is not None else "nothing"


@record
class Failure:
    """A failed call: its kind, the number of attempts, and the provider's message without keys."""

    kind: FailureKind
    message: str
    attempts: int
    latency_ms: float | None = None
    queue_ms: float | None = None
    waited_ms: float | None = None
    concurrency: int | None = None
    failed_cost_usd: float | None = None  # of attempts that stated their usage; None without any
    tried: tuple[str, ...] = ()  # what became of each attempt, in words


# Baselines: rule-based models in this process, which are called and reported like LLMs.


BASELINE = "baseline"
FUNCTION = "function"
ANSWERED_HERE = (f"{BASELINE}/", f"{FUNCTION}/")  # begin the names of models that answer without a server

Messages = Sequence[Mapping[str, str]]
Baseline = Callable[[Messages], str]
"""Maps the messages of a request to the text of a reply."""


@dataclass(frozen=True, slots=True)
class Revised:
    """A baseline whose rules have changed. The revision is part of the prompt hash, so that older replies stay."""

    baseline: Baseline
    revision: str

    def __call__(self, messages: Messages) -> str:
        """Answer by the baseline."""
        return self.baseline(messages)


def revision_of(model: str, baselines: Mapping[str, Baseline]) -> str | None:
    """Look up the revision of a baseline; None for its first revision and for other models."""
    baseline = baselines.get(model.removeprefix(f"{BASELINE}/")) if model.startswith(f"{BASELINE}/") else None
    return baseline.revision if isinstance(baseline, Revised) else None


class BaselineRefusedError(Exception):
    """The baseline cannot judge these messages."""


async def answer_by_baseline(baseline: Baseline, request: Request) -> Reply | Failure:
    """Answer a request by a baseline, at cost 0, without tokens and latency.

    Returns a failure of kind bad_request where the baseline refuses the messages.
    """
    await asyncio.sleep(0)  # lets other calls run
    try:
        text = baseline(request.messages).encode("utf-8", "replace").decode()  # no table holds a lone surrogate
    except BaselineRefusedError as error:
        return Failure("bad_request", str(error).encode("utf-8", "replace").decode(), 1)
    return Reply(text, finish_reason="stop", model_reported=request.model, cost_usd=0.0, attempts=1)


# Functions of a user's process as models: their replies are text, and what they raise is a failed call.


LONGEST_MESSAGE = 500


@dataclass(frozen=True)
class Function:
    """A function that maps a sample's input to a reply, and the threads that call it."""

    function: Callable[[str], str]
    threads: Executor

    def __call__(self, messages: Messages) -> str:
        """Answer the last message. Raises TypeError where the function returns no text."""
        text = self.function(messages[-1]["content"])
        if not isinstance(text, str):
            raise TypeError(f"the function returned {type(text).__name__}: return text")
        text.encode()  # a lone surrogate cannot be kept
        return text

    async def answer(self, request: Request) -> Reply | Failure:
        """Answer a request on a thread of its own. Tokens and cost are unknown."""
        try:
            text, seconds = await asyncio.get_running_loop().run_in_executor(self.threads, self._timed, request)
        except Exception as error:  # noqa: BLE001 - a user's function may raise any exception
            return Failure("server", redact(f"{type(error).__name__}: {error}")[:LONGEST_MESSAGE], 1)
        return Reply(text, finish_reason="stop", model_reported=request.model, latency_ms=seconds * 1000)

    def _timed(self, request: Request) -> tuple[str, float]:
        begun = time.perf_counter()
        return self(request.messages), time.perf_counter() - begun


def absent(messages: Messages) -> str:
    """Stand for a function of another process. Raises BaselineRefusedError."""
    raise BaselineRefusedError("only the process with the function can ask it: call `evalake.evaluate` there again")
