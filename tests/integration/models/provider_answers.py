"""What the servers of each provider answer, in its own language, at once and in pieces."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.cases import cases_beside

_SAID = cases_beside(__file__, "provider_answers.json")


@dataclass(frozen=True)
class Case:
    """A provider's model, and the language in which its server speaks."""

    model: str
    language: str
    path: str = ""

    def __str__(self) -> str:
        return self.model

    @property
    def reply(self) -> Mapping[str, Any]:
        """What its server says at once."""
        said: Mapping[str, Any] = _SAID[self.language]["reply"]
        return said

    @property
    def pieces(self) -> Sequence[Mapping[str, Any]]:
        """The same answer in pieces."""
        said: Sequence[Mapping[str, Any]] = _SAID[self.language]["pieces"]
        return said

    def stream(self, *pieces: Mapping[str, Any]) -> bytes:
        """Pieces as they come over the wire."""
        said = [json.dumps(piece).encode() for piece in pieces]
        if self.language == "ollama":
            return b"".join(piece + b"\n" for piece in said)
        return b": a comment\n\n" + b"".join(b"event: some\ndata: " + piece + b"\n\n" for piece in said)


CASES: Mapping[str, tuple[Case, ...]] = {
    "anthropic": tuple(Case(f"anthropic/{name}", "anthropic") for name in ("claude-haiku-4-5", "claude-opus-4-1")),
    "gemini": tuple(Case(f"gemini/{name}", "gemini") for name in ("gemini-2.5-pro", "gemini-2.0-flash")),
    "ollama_chat": (Case("ollama_chat/llama3", "ollama"),),
    "openai": (Case("openai/gpt-4o-mini", "openai", "/v1"),),
    "xai": (Case("xai/grok-3", "openai", "/v1"),),
}
