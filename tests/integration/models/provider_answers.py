"""What the servers of each provider answer, in its own language, at once and in pieces."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 50,
    "total_tokens": 1050,
    "prompt_tokens_details": {"cached_tokens": 400},
    "completion_tokens_details": {"reasoning_tokens": 20},
}


def _openai(**message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": '{"action": "BLOCK"}', "reasoning_content": "so", **message}
    choice = {"index": 0, "message": said, "finish_reason": "stop"}
    base = {"id": "c", "object": "chat.completion", "created": 1, "model": "what-answered", "choices": [choice]}
    return {**base, "usage": _USAGE}


@dataclass(frozen=True)
class Case:
    """A provider's model, and what its server says in the provider's language, at once and in pieces."""

    model: str
    reply: Mapping[str, Any]
    path: str = "/v1"

    def __str__(self) -> str:
        return self.model

    @property
    def pieces(self) -> tuple[Mapping[str, Any], ...]:
        """The same answer in pieces."""
        return {id(_CLAUDE): _CLAUDE_PIECES, id(_GEMINI): _GEMINI_PIECES, id(_OLLAMA): _OLLAMA_PIECES}.get(
            id(self.reply), _OPENAI_PIECES
        )

    def stream(self, *pieces: Mapping[str, Any]) -> bytes:
        """Pieces as they come over the wire."""
        said = [json.dumps(piece).encode() for piece in pieces]
        if self.model.startswith("ollama"):
            return b"".join(piece + b"\n" for piece in said)
        return b": a comment\n\n" + b"".join(b"event: some\ndata: " + piece + b"\n\n" for piece in said)


_CLAUDE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude-what-answered",
    "content": [{"type": "thinking", "thinking": "so", "signature": "s"}, {"type": "text", "text": "BLOCK"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 400},
}
_GEMINI: dict[str, Any] = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "BLOCK"}]}, "finishReason": "STOP", "index": 0}],
    "modelVersion": "gemini-what-answered",
    "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 50, "totalTokenCount": 1050},
}
_OLLAMA = {
    "model": "llama3",
    "message": {"role": "assistant", "content": "BLOCK"},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 1000,
    "eval_count": 50,
}


def _piece(delta: Mapping[str, Any], finish_reason: str | None = None, index: int = 0) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": finish_reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "what-answered", "choices": [choice]}


_OPENAI_PIECES = (
    _piece({"role": "assistant", "content": ""}),
    _piece({"reasoning_content": "so"}),
    _piece({"content": '{"action": '}),
    _piece({"content": "what another choice says"}, index=1),
    _piece({"content": '"BLOCK"}'}),
    _piece({}, "stop"),
    {**_piece({}), "choices": [], "usage": _USAGE},
)
_CLAUDE_PIECES = (
    {
        "type": "message_start",
        "message": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude-what-answered",
            "content": [],
            "usage": {"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 400},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "so"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "ping"},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "BL"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "OCK"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 50}},
    {"type": "message_stop"},
)
_GEMINI_PIECES = (
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "BL"}]}, "index": 0}], "modelVersion": "g"},
    {**_GEMINI, "candidates": [{**_GEMINI["candidates"][0], "content": {"role": "model", "parts": [{"text": "OCK"}]}}]},
)
_OLLAMA_PIECES = (
    {"model": "llama3", "message": {"role": "assistant", "content": "BL"}, "done": False},
    {**_OLLAMA, "message": {"role": "assistant", "content": "OCK"}},
)
CASES: Mapping[str, tuple[Case, ...]] = {
    "anthropic": (Case("anthropic/claude-haiku-4-5", _CLAUDE, ""), Case("anthropic/claude-opus-4-1", _CLAUDE, "")),
    "gemini": (Case("gemini/gemini-2.5-pro", _GEMINI, ""), Case("gemini/gemini-2.0-flash", _GEMINI, "")),
    "ollama_chat": (Case("ollama_chat/llama3", _OLLAMA, ""),),
    "openai": (Case("openai/gpt-4o-mini", _openai()),),
    "xai": (Case("xai/grok-3", _openai()),),
}
