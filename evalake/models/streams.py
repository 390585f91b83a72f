"""Streamed answers: their timeouts, their events, and the answer that they add up to."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from evalake.models import replies
from evalake.models.failures import AttemptFailed, reason_of_error, require_no_failure, value_of

LONGEST = 30  # the longest time of a streamed answer, as a multiple of the longest silence
STREAMED: Mapping[str, Any] = {"stream_options": {"include_usage": True}}
END = b"[DONE]"
MIDDLE = "in the middle of the answer"
MOST_PIECES = 2**18  # a model sends at most one piece for each token
PIECES_AT_ONCE = 64  # read before other tasks of the loop run


class AnswerTimeout:
    """The timeout of an attempt: for the whole answer, or for each piece of a streamed one."""

    def __init__(self, seconds: float, stream: bool) -> None:
        self.deadline = asyncio.timeout(seconds)
        self._seconds, self._stream = seconds, stream
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + LONGEST * seconds

    def on_data(self) -> None:
        """Extend the deadline after a piece of the answer."""
        if self._stream:
            self.deadline.reschedule(min(self._loop.time() + self._seconds, self._end))

    @property
    def message(self) -> str:
        """The error message of the timeout."""
        if self._stream and self._loop.time() < self._end:
            return f"no data for {self._seconds:g} seconds"
        return f"no complete reply within {self._seconds * (LONGEST if self._stream else 1):g} seconds"


async def read_stream(body: bytes, parse: Callable[[Any], Any] | None = None) -> replies.ProviderAnswer:
    """Read a streamed answer; other tasks of the loop run in between. Raises AttemptFailed where it is none.

    `parse` reads a piece in another form than OpenAI's as LiteLLM's object.
    """
    answer = StreamedAnswer()
    try:
        for number, piece in enumerate(read_events(body), start=1):
            require_no_failure(piece, during=MIDDLE)
            if parse is None or replies.in_openai_form(piece):
                answer.add(piece)
            else:
                answer.add(parse(piece), piece)
            if number % PIECES_AT_ONCE == 0:
                await asyncio.sleep(0)
    except AttemptFailed:
        raise
    except Exception as error:  # LiteLLM may raise any exception
        words = f"the reply cannot be read: {reason_of_error(error)}"
        raise AttemptFailed("malformed_response", words) from error
    return answer.answer()


def read_events(body: bytes) -> Iterator[Any]:
    """Yield the JSON pieces of a stream: server-sent events, or lines as Ollama sends them.

    Raises ValueError for invalid JSON.
    """
    for line in body.splitlines():
        said = line.removeprefix(b"data:").strip() if line.startswith((b"data:", b"{")) else b""
        if said == END:
            return
        if said:
            yield json.loads(said)


class StreamedAnswer:
    """The answer that the pieces of a stream add up to: objects of JSON, or LiteLLM's. It has the first choice.

    LiteLLM's own `stream_chunk_builder` invents token counts, and mixes the texts of several choices.
    """

    def __init__(self) -> None:
        self._pieces = 0
        self._messages: list[replies.Message] = []
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
            self._counted = (self._counted or set()) | replies.stated_counts(raw)
        self._model = value_of(piece, "model") or self._model
        self._usage = value_of(piece, "usage") or self._usage  # the last one counts the whole answer
        for choice in value_of(piece, "choices") or ():
            if value_of(choice, "index") in (0, None):
                message = replies.read_message(value_of(choice, "delta") or value_of(choice, "message"))
                self._messages.append(message)
                for number, call in enumerate(message.tool_calls):
                    self._add_call(number, call)
                reason = value_of(choice, "finish_reason")
                self._finish_reason = (reason if raw is None else replies.reason_of(reason, raw)) or self._finish_reason

    def answer(self) -> replies.ProviderAnswer:
        """Build the whole answer. Raises AttemptFailed where its end is missing."""
        if not self._pieces:
            raise AttemptFailed("malformed_response", "the reply holds no piece of an answer")
        if self._finish_reason is None:
            raise AttemptFailed("connection", "the reply broke off before its end")
        message = replies.Message(
            text=self._joined("text"),
            reasoning=self._joined("reasoning"),
            refusal=self._joined("refusal"),
            tool_calls=list(self._calls.values()),
        )
        tokens = replies.read_tokens(self._usage)
        if self._counted is not None:
            tokens = replies.only(tokens, self._counted)
        return replies.ProviderAnswer(
            replies.without_leading_thoughts(message), replies.finish_reason(self._finish_reason), self._model, tokens
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
