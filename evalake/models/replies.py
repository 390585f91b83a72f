"""Reads providers' answers, whole or streamed, as JSON in OpenAI's form or as LiteLLM's objects, into replies.

Both have the same names. An unreadable answer is a failure that quotes it (`failures.py`), never an empty reply.
"""

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalake.core.redaction import KnownKeys
from evalake.models import failures
from evalake.models import litellm_internals as internals
from evalake.models.cost import Tokens, cost_usd
from evalake.models.failures import AttemptFailed, excerpt, first_of, value_of
from evalake.models.request import Reply
from evalake.models.routes import Route

_LONGEST_SHOWN = 1000  # bytes of an answer that is not JSON
_LARGEST_COUNT = 2**53 - 1  # of tokens; a larger count is unknown
STREAMED: Mapping[str, Any] = {"stream_options": {"include_usage": True}}
_ENDS = frozenset({"stop", "length", "content_filter", "tool_calls"})  # LiteLLM keeps these
_STOPS = frozenset({"end_turn", "stop_sequence", "eos", "eos_token", "complete", "stop"})  # LiteLLM takes others for it
# Each provider's answer has one of these where it says how it ended
_LANGUAGES = ("choices", "candidates", "promptFeedback", "stop_reason", "stopReason", "finish_reason", "done")
_COUNTS = {field: frozenset(names) for field, names in failures.ANSWERS["counts"].items()}
# Like LiteLLM, this reader treats a block of thinking at the beginning of a text as reasoning
_LEADING_THOUGHTS = re.compile(r"<(think|thinking|budget:thinking)>(.*?)</\1>(.*)", re.DOTALL)
_THINKING_PARTS = frozenset({"thinking", "reasoning", "redacted_thinking", "reasoning_content"})
_TOOL_PARTS = frozenset({"tool_use", "tool_call", "function_call"})


@dataclass(frozen=True, slots=True)
class Message:
    """The parts of a message or of a piece of one; None for a missing part."""

    text: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """A provider's answer, without a price, and with any of our keys that it repeats."""

    message: Message
    finish_reason: Any
    model: Any
    tokens: Tokens


def read_whole(body: bytes, route: Route, read: Callable[[Any], ProviderAnswer]) -> ProviderAnswer:
    """Read an answer of status 200 that was not streamed, by `read`. Raises AttemptFailed where it is none."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        words = excerpt(body[:_LONGEST_SHOWN].decode("utf-8", "replace")) or "nothing"
        raise AttemptFailed("malformed_response", f"an answer of status 200 that is not JSON: {words}") from error
    try:
        failures.require_no_failure(content)
        return read(content)
    except AttemptFailed as failure:
        usage = value_of(content, "usage")
        failure.cost_usd = None if usage is None else cost_usd(route.model, read_tokens(usage), route.price)
        raise


def in_openai_form(answer: Any) -> bool:
    """Tell whether an answer, or a piece of one, is an object with a list of choices."""
    return isinstance(answer, Mapping) and isinstance(answer.get("choices"), list)


def read_answer(answer: Any) -> ProviderAnswer:
    """Read JSON in OpenAI's form or a `litellm.ModelResponse`; raises AttemptFailed where it has no message."""
    first = first_of(answer, "choices")
    message = value_of(first, "message")
    if message is None or isinstance(message, str | int | float | list):
        words = "the reply holds no choice with a message"
        if isinstance(answer, Mapping):
            words = f"{words}: {excerpt(json.dumps(answer, ensure_ascii=False))}"
        raise AttemptFailed("malformed_response", words)
    return ProviderAnswer(
        without_leading_thoughts(read_message(message)),
        finish_reason(value_of(first, "finish_reason")),
        value_of(answer, "model"),
        read_tokens(value_of(answer, "usage")),
    )


def read_message(message: Any) -> Message:
    """Read a message or a piece of one. Raises AttemptFailed for a content other than text or parts."""
    content = value_of(message, "content")
    further = value_of(message, "provider_specific_fields") or {}
    parts = list(_parts(content))
    refusal = value_of(message, "refusal") or value_of(further, "refusal")
    return Message(
        text=_joined(text for kind, text in parts if kind == "text"),
        reasoning=_joined(text for kind, text in parts if kind == "reasoning") or _reasoning(message),
        refusal=_joined(text for kind, text in parts if kind == "refusal") or (refusal if _is_text(refusal) else None),
        tool_calls=_tool_calls(message),
    )


def without_leading_thoughts(message: Message) -> Message:
    """Move a leading block of thinking from the text to an empty reasoning."""
    if message.text is None or message.reasoning or not (found := _LEADING_THOUGHTS.match(message.text)):
        return message
    return replace(message, text=found[3], reasoning=found[2])


def finish_reason(reason: Any) -> Any:
    """Map a finish reason to OpenAI's words, as LiteLLM does; null stays, and what LiteLLM calls "stop" for a want."""
    if not _is_text(reason) or reason in _ENDS:
        return reason
    mapped = internals.finish_reason(reason)
    return reason if mapped == "stop" and reason.lower() not in _STOPS else mapped


def as_stated(answered: ProviderAnswer, body: Any) -> ProviderAnswer:
    """Drop from LiteLLM's reading of an answer what its body does not state: "stop", and estimated token counts.

    Raises AttemptFailed where the body is a piece that a stream begins with.
    """
    if value_of(body, "done") is False:
        raise AttemptFailed("connection", "the reply broke off before its end")
    reason = answered.finish_reason
    if any(name in body for name in _LANGUAGES):
        reason = finish_reason(reason_of(reason, body))
    model = value_of(body, "model") or answered.model  # LiteLLM adds Ollama's name
    return replace(answered, finish_reason=reason, model=model, tokens=only(answered.tokens, stated_counts(body)))


def reason_of(read: Any, body: Any) -> Any:
    """Return the reason that a body states; LiteLLM's reading of it counts where a tool is called."""
    stated = failures.stated_reason(body)
    return read if stated and read == "tool_calls" else stated


def stated_counts(body: Any, deep: int = 4) -> set[str]:
    """Find the token counts that a body states as whole numbers, by the names of `Tokens`."""
    found: set[str] = set()
    if isinstance(body, Mapping) and deep:
        for name, value in body.items():
            if isinstance(value, Mapping):
                found |= stated_counts(value, deep - 1)
            elif _count(body, name) is not None:
                found |= {field for field, names in _COUNTS.items() if name in names}
    return found


def only(tokens: Tokens, counted: set[str]) -> Tokens:
    """Keep only the counts of these names."""
    return replace(tokens, **{name: None for name in _COUNTS if name not in counted})


def reply_of(answered: ProviderAnswer, route: Route, keys: KnownKeys) -> Reply:
    """Build the reply of an answer, with its price and without our keys."""
    message = answered.message
    calls = json.dumps(message.tool_calls, ensure_ascii=False, default=str) if message.tool_calls else None
    said = bool(message.text or message.reasoning or message.refusal or calls)
    tokens = known(answered.tokens, said=said)
    return Reply(
        text=_clean(message.text, keys),
        finish_reason=_clean(answered.finish_reason, keys),
        model_reported=_clean(answered.model or None, keys),
        input_tokens=tokens.input,
        cached_input_tokens=tokens.cached_input,
        output_tokens=tokens.output,
        reasoning_tokens=tokens.reasoning,
        cost_usd=cost_usd(route.model, tokens, route.price),
        reasoning=_clean(message.reasoning, keys),
        refusal=_clean(message.refusal, keys),
        tool_calls=_clean(calls, keys),
    )


def read_tokens(usage: Any) -> Tokens:
    """Read the token counts of a usage block, under OpenAI's or Anthropic's names; other values are unknown."""
    given, made = (_first(usage, f"{name}_tokens_details") for name in ("prompt", "completion"))
    cached = _count(given, "cached_tokens")
    written = _count(given, "cache_creation_tokens")
    reasoning = _count(made, "reasoning_tokens")
    reasoning = _count(usage, "reasoning_tokens") if reasoning is None else reasoning
    given_tokens = _count(usage, "prompt_tokens", "input_tokens")
    output = _count(usage, "completion_tokens", "output_tokens")
    if given_tokens is not None and output is not None and reasoning:
        counts_beside = _count(usage, "total_tokens") == given_tokens + output + reasoning  # xAI
        output += reasoning if counts_beside else 0
    return Tokens(
        given_tokens,
        output,
        _count(usage, "prompt_cache_hit_tokens", "cache_read_input_tokens") if cached is None else cached,
        reasoning,
        _count(usage, "cache_creation_input_tokens") if written is None else written,
    )


def known(tokens: Tokens, *, said: bool = True) -> Tokens:
    """Drop impossible counts of 0, by which LiteLLM fills in missing ones: of a prompt, or of a reply with content."""
    if not tokens.input and not tokens.output:
        return Tokens()
    return replace(tokens, input=tokens.input or None, output=tokens.output or (None if said else tokens.output))


def _parts(content: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of a content by kind: text, reasoning, refusal."""
    if content is None:
        return
    if isinstance(content, str):
        yield "text", content
        return
    parts = [content] if isinstance(content, Mapping) else content
    if not isinstance(parts, list):
        raise AttemptFailed("malformed_response", f"the content of the reply is not text: {excerpt(repr(content))}")
    for part in parts:
        if isinstance(part, str):
            yield "text", part
            continue
        kind = value_of(part, "type")
        if kind in _THINKING_PARTS:
            yield "reasoning", "".join(_texts(value_of(part, str(kind)) or part))
        elif kind == "refusal":
            yield "refusal", "".join(_texts(value_of(part, "refusal")))
        elif kind is None and next(_texts(part), None) is None:
            raise AttemptFailed("malformed_response", f"the content of the reply is not text: {excerpt(repr(part))}")
        elif kind not in _TOOL_PARTS:
            yield "text", "".join(_texts(part))


def _reasoning(message: Any) -> str | None:
    """Read the reasoning beside a content, under the names of all providers."""
    names = ("reasoning_content", "reasoning", "thinking_blocks", "reasoning_details", "reasoning_text", "thinking")
    for name in names:
        if found := "".join(_texts(value_of(message, name))):
            return found
    return None


def _texts(said: Any) -> Iterator[str]:
    """Yield the texts of a text or of its parts."""
    if isinstance(said, str):
        yield said
    elif isinstance(said, list):
        for each in said:
            yield from _texts(each)
    elif said is not None:
        yield from _texts(_first(said, "text", "thinking", "summary", "value"))


def _tool_calls(message: Any) -> Sequence[Mapping[str, Any]]:
    """Read the tool calls as JSON objects, with the older `function_call`, and those among the parts of a content."""
    calls = value_of(message, "tool_calls")
    if isinstance(calls, list) and calls:
        return [_plain(call) for call in calls]
    function = value_of(message, "function_call")
    if function:
        return [{"type": "function", "function": _plain(function)}]
    content = value_of(message, "content")
    parts = content if isinstance(content, list) else ()
    return [_plain(part) for part in parts if value_of(part, "type") in _TOOL_PARTS]


def _plain(each: Any) -> Mapping[str, Any]:
    if isinstance(each, Mapping):
        return each
    return dict(each.model_dump(exclude_none=True)) if hasattr(each, "model_dump") else {"value": str(each)}


def _first(holder: Any, *names: str) -> Any:
    return next((value for name in names if (value := value_of(holder, name)) is not None), None)


def _joined(texts: Iterator[str]) -> str | None:
    found = list(texts)
    return "".join(found) if found else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _clean(value: Any, keys: KnownKeys) -> str | None:
    """Write a text as valid UTF-8 without our keys; lone surrogates become `?`."""
    return keys.redact(value).encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else None


def _count(holder: Any, *names: str) -> int | None:
    value = _first(holder, *names)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT else None


# Streamed answers: their events, and the answer that they add up to.


_END = b"[DONE]"
_MIDDLE = "in the middle of the answer"
MOST_PIECES = 2**18  # a model sends at most one piece for each token
PIECES_AT_ONCE = 64  # read before other tasks of the loop run


async def read_stream(body: bytes, parse: Callable[[Any], Any] | None = None) -> ProviderAnswer:
    """Read a streamed answer; other tasks of the loop run in between. Raises AttemptFailed where it is none.

    `parse` reads a piece in another form than OpenAI's as LiteLLM's object.
    """
    answer = StreamedAnswer()
    try:
        for number, piece in enumerate(read_events(body), start=1):
            failures.require_no_failure(piece, during=_MIDDLE)
            if parse is None or in_openai_form(piece):
                answer.add(piece)
            else:
                answer.add(parse(piece), piece)
            if number % PIECES_AT_ONCE == 0:
                await asyncio.sleep(0)
    except AttemptFailed:
        raise
    except Exception as error:  # LiteLLM may raise any exception
        words = f"the reply cannot be read: {failures.reason_of_error(error)}"
        raise AttemptFailed("malformed_response", words) from error
    return answer.answer()


def read_events(body: bytes) -> Iterator[Any]:
    """Yield the JSON pieces of a stream: server-sent events, or lines as Ollama sends them.

    Raises ValueError for invalid JSON.
    """
    for line in body.splitlines():
        said = line.removeprefix(b"data:").strip() if line.startswith((b"data:", b"{")) else b""
        if said == _END:
            return
        if said:
            yield json.loads(said)


class StreamedAnswer:
    """The answer that the pieces of a stream add up to: objects of JSON, or LiteLLM's. It has the first choice.

    LiteLLM's own `stream_chunk_builder` invents token counts, and mixes the texts of several choices.
    """

    def __init__(self) -> None:
        self._pieces = 0
        self._messages: list[Message] = []
        self._calls: dict[Any, dict[str, Any]] = {}
        self._finish_reason: Any = None
        self._model: Any = None
        self._usage: Any = None
        self._counted: set[str] | None = None

    def add(self, piece: Any, raw: Any = None) -> None:
        """Add a piece, with what LiteLLM has read it from, where it has.

        Raises AttemptFailed after MOST_PIECES pieces.
        """
        self._pieces += 1
        if self._pieces > MOST_PIECES:
            raise AttemptFailed("malformed_response", f"the reply came in more than {MOST_PIECES:,} pieces")
        if raw is not None:
            self._counted = (self._counted or set()) | stated_counts(raw)
        self._model = value_of(piece, "model") or self._model
        self._usage = value_of(piece, "usage") or self._usage  # the last one counts the whole answer
        for choice in value_of(piece, "choices") or ():
            if value_of(choice, "index") in (0, None):
                message = read_message(value_of(choice, "delta") or value_of(choice, "message"))
                self._messages.append(message)
                for number, call in enumerate(message.tool_calls):
                    self._add_call(number, call)
                reason = value_of(choice, "finish_reason")
                self._finish_reason = (reason if raw is None else reason_of(reason, raw)) or self._finish_reason

    def answer(self) -> ProviderAnswer:
        """Build the whole answer. Raises AttemptFailed where its end is missing."""
        if not self._pieces:
            raise AttemptFailed("malformed_response", "the reply holds no piece of an answer")
        if self._finish_reason is None:
            raise AttemptFailed("connection", "the reply broke off before its end")
        message = Message(
            text=self._joined("text"),
            reasoning=self._joined("reasoning"),
            refusal=self._joined("refusal"),
            tool_calls=list(self._calls.values()),
        )
        tokens = read_tokens(self._usage)
        if self._counted is not None:
            tokens = only(tokens, self._counted)
        return ProviderAnswer(
            without_leading_thoughts(message), finish_reason(self._finish_reason), self._model, tokens
        )

    def _joined(self, part: str) -> str | None:
        return "".join(getattr(message, part) or "" for message in self._messages) or None

    def _add_call(self, number: int, call: Mapping[str, Any]) -> None:
        """Join the pieces of a tool call: name and id come once, the arguments in parts."""
        whole = self._calls.setdefault(call.get("index", number), {})
        for name, value in call.items():
            if name == "function" and isinstance(value, Mapping):
                function = whole.setdefault("function", {})
                for part, said in value.items():
                    if isinstance(said, str):
                        function[part] = function.get(part, "") + said
            elif name != "index" and value is not None:
                whole.setdefault(name, value)
