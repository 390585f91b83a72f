"""Answers that come piece by piece: how long the next one is waited for, and how they become one response."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

from providers.failures import AttemptFailed
from providers.litellm_setup import load

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
    """An answer as far as it has come, put together from what LiteLLM reads of each piece.

    LiteLLM's own `stream_chunk_builder` counts tokens itself where the provider states none, and mixes the texts of
    several choices; of these, a reply has the first.
    """

    def __init__(self) -> None:
        self._pieces = 0
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._finish_reason: str | None = None
        self._model: str | None = None
        self._usage: Any = None

    def add(self, piece: Any) -> None:
        """Take in a `litellm.ModelResponseStream`. Raises AttemptFailed where there are more than any model writes."""
        self._pieces += 1
        if self._pieces > MOST_PIECES:
            raise AttemptFailed("malformed_response", f"the reply came in more than {MOST_PIECES:,} pieces")
        self._model = getattr(piece, "model", None) or self._model
        self._usage = getattr(piece, "usage", None) or self._usage  # which counts all that came before it, too
        for choice in piece.choices:
            if choice.index == 0:
                self._texts.append(getattr(choice.delta, "content", None) or "")
                self._refusals.append(getattr(choice.delta, "refusal", None) or "")
                self._finish_reason = choice.finish_reason or self._finish_reason

    def response(self) -> Any:
        """Build the `litellm.ModelResponse` that a provider would have given at once.

        Raises AttemptFailed where the answer has not come to its end.
        """
        if not self._pieces:
            raise AttemptFailed("malformed_response", "the reply holds no piece of an answer")
        if self._finish_reason is None:
            raise AttemptFailed("connection", "the reply broke off before its end")
        litellm: Any = load()
        text, refusal = "".join(self._texts), "".join(self._refusals)
        message = litellm.Message(
            content=text or None, provider_specific_fields={"refusal": refusal} if refusal else None
        )
        choice = litellm.Choices(finish_reason=self._finish_reason, message=message)
        response = litellm.ModelResponse(model=self._model, choices=[choice])
        response.usage = self._usage
        return response
