"""Answers that come piece by piece: how long the next one is waited for, and how they become one response."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

from evalake.models.failures import AttemptFailed, require_no_failure, value_of
from evalake.models.replies import (
    Message,
    ProviderAnswer,
    finish_reason,
    read_message,
    read_tokens,
    without_leading_thoughts,
)

LONGEST = 30  # times the longest silence: how long an answer may take in all, however steadily it drips
STREAMED: Mapping[str, Any] = {"stream_options": {"include_usage": True}}  # where it is a parameter that is taken
MOST_PIECES = 2**18  # more than any model writes: at most one for each token


def tells_its_end(model: str) -> bool:
    """Tell whether a stream that LiteLLM reads by itself shows whether it is whole.

    LiteLLM marks every piece of a Gemini stream as the end of the answer, and takes a lost connection for that end.
    """
    return "gemini" not in model.lower()


class Patience:
    """How long an attempt is waited for: for the whole answer or, where that comes in pieces, from each to the next."""

    def __init__(self, seconds: float, stream: bool) -> None:
        self.deadline = asyncio.timeout(seconds)
        self._seconds, self._stream = seconds, stream
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + LONGEST * seconds

    def heard(self) -> None:
        """Note that something has come."""
        if self._stream:
            self.deadline.reschedule(min(self._loop.time() + self._seconds, self._end))

    @property
    def exhausted(self) -> str:
        """What did not come in time, as the text of an error."""
        if self._stream and self._loop.time() < self._end:
            return f"nothing came for {self._seconds:g} seconds"
        return f"no whole reply within {self._seconds * (LONGEST if self._stream else 1):g} seconds"


def read_events(body: bytes) -> Iterator[Any]:
    """Yield the pieces of JSON in a stream: of server-sent events or, as Ollama has it, line by line.

    Raises ValueError for what is no JSON.
    """
    for line in body.splitlines():
        said = line.removeprefix(b"data:").strip()
        if said == b"[DONE]":
            return
        if said and line.startswith((b"data:", b"{")):
            yield json.loads(said)


class Whole:
    """An answer as far as it has come, put together from its pieces: objects of JSON, or what LiteLLM read of them.

    LiteLLM's own `stream_chunk_builder` counts tokens itself where the provider states none, and mixes the texts of
    several choices; of these, a reply has the first.
    """

    def __init__(self) -> None:
        self._pieces = 0
        self._messages: list[Message] = []
        self._calls: dict[Any, dict[str, Any]] = {}
        self._finish_reason: Any = None
        self._model: Any = None
        self._usage: Any = None

    def add(self, piece: Any) -> None:
        """Take in a piece.

        Raises AttemptFailed where it says that the upstream failed, or there are more than any model writes.
        """
        self._pieces += 1
        if self._pieces > MOST_PIECES:
            raise AttemptFailed("malformed_response", f"the reply came in more than {MOST_PIECES:,} pieces")
        require_no_failure(piece, during="in the middle of the answer")
        self._model = value_of(piece, "model") or self._model
        self._usage = value_of(piece, "usage") or self._usage  # which counts all that came before it, too
        for choice in value_of(piece, "choices") or ():
            if value_of(choice, "index") in (0, None):
                message = read_message(value_of(choice, "delta"))
                self._messages.append(message)
                for number, call in enumerate(message.tool_calls):
                    self._add_call(number, call)
                self._finish_reason = value_of(choice, "finish_reason") or self._finish_reason

    def answer(self) -> ProviderAnswer:
        """Build the answer that a provider would have given at once.

        Raises AttemptFailed where the answer has not come to its end.
        """
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
        reason = finish_reason(self._finish_reason)
        return ProviderAnswer(without_leading_thoughts(message), reason, self._model, read_tokens(self._usage))

    def _joined(self, part: str) -> str | None:
        return "".join(getattr(message, part) or "" for message in self._messages) or None

    def _add_call(self, number: int, call: Mapping[str, Any]) -> None:
        """Join the pieces of a tool's call: name and id come once, its arguments bit by bit."""
        whole = self._calls.setdefault(call.get("index", number), {})
        for name, value in call.items():
            if name == "function" and isinstance(value, Mapping):
                function = whole.setdefault("function", {})
                for part, said in value.items():
                    if isinstance(said, str):
                        function[part] = function.get(part, "") + said
            elif name != "index" and value is not None:
                whole.setdefault(name, value)
