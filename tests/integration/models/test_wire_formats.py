"""Providers that do not speak OpenAI's language: what LiteLLM makes of theirs is read right, and priced right."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from evalake.core.configuration import Configuration, Limits, ModelOptions
from evalake.models.attempts import Outcome
from evalake.models.client import Client
from evalake.models.request import Failure, Reply
from tests.integration.models.support import QUICK, answer, request
from tests.servers.recorder import Recorder, recorder

KEY = "a-key-of-nobody-0123456789"
SAID = '{"action": "BLOCK"}'

CLAUDE, GEMINI = "anthropic/claude-haiku-4-5", "gemini/gemini-2.5-pro"
AZURE, OLLAMA = "azure/gpt-4o-mini", "ollama_chat/llama3"


class Wire:
    """A server that answers every request with one status and one JSON body."""

    def __init__(self, server: Recorder) -> None:
        self.server = server

    def ask(self, model: str, body: Mapping[str, Any], status: int = 200) -> Outcome:
        """The outcome of one call of the model that is answered so."""
        self.server.answer(body, status)
        configuration = Configuration(
            models={model: ModelOptions(api_base=self.server.address)},
            providers={model.partition("/")[0]: Limits(attempts=2, timeout_seconds=20)},
        )
        with Client(configuration, backoff_seconds=QUICK) as client:
            return answer(client, request("x", model, max_tokens=99))

    def reply(self, model: str, body: Mapping[str, Any]) -> Reply:
        """As `ask`, where it is a reply."""
        outcome = self.ask(model, body)
        assert isinstance(outcome, Reply), outcome
        return outcome


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    for provider in ("ANTHROPIC", "GEMINI", "AZURE"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)
    with recorder() as server:
        yield Wire(server)


def _claude(stop_reason: str = "end_turn", *content: Mapping[str, Any], **usage: int) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5-20251001",
        "content": list(content),
        "stop_reason": stop_reason,
        "usage": {"input_tokens": 100, "output_tokens": 50, **usage},
    }


def _gemini(reason: str = "STOP", *parts: Mapping[str, Any], **usage: int) -> dict[str, Any]:
    content = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    counts = {"promptTokenCount": 1000, **usage}
    counts["totalTokenCount"] = counts["promptTokenCount"] + sum(usage.get(name, 0) for name in _GEMINI_OUTPUT)
    return {"candidates": [{**content, "finishReason": reason, "index": 0}], "usageMetadata": counts}


_GEMINI_OUTPUT = ("candidatesTokenCount", "thoughtsTokenCount")


def test_claude_counts_what_was_cached_beside_the_input(wire: Wire) -> None:
    body = _claude(
        "end_turn",
        {"type": "thinking", "thinking": "let me see", "signature": "s"},
        {"type": "text", "text": SAID},
        cache_read_input_tokens=400,
        cache_creation_input_tokens=200,
    )
    reply = wire.reply(CLAUDE, body)
    assert (reply.text, reply.finish_reason, reply.model_reported) == (SAID, "stop", "claude-haiku-4-5-20251001")
    assert (reply.input_tokens, reply.cached_input_tokens, reply.output_tokens) == (700, 400, 50)
    # 1.00 and 5.00 dollars per million; read from the cache 0.10, written to it 1.25
    assert reply.cost_usd == pytest.approx(100 * 1e-6 + 400 * 0.1e-6 + 200 * 1.25e-6 + 50 * 5e-6)
    assert wire.server.sent[0].headers["x-api-key"] == KEY


def test_a_refusal_of_claude_is_no_text(wire: Wire) -> None:
    reply = wire.reply(CLAUDE, _claude("refusal"))
    assert (reply.text, reply.finish_reason) == (None, "content_filter")
    cut = wire.reply(CLAUDE, _claude("max_tokens", {"type": "text", "text": "{"}))
    assert (cut.text, cut.finish_reason) == ("{", "length")


def test_gemini_counts_thoughts_beside_the_output(wire: Wire) -> None:
    parts = ({"text": "let me see", "thought": True}, {"text": SAID[:5]}, {"text": SAID[5:]})
    counts = {"candidatesTokenCount": 50, "thoughtsTokenCount": 300, "cachedContentTokenCount": 400}
    reply = wire.reply(GEMINI, _gemini("STOP", *parts, **counts))
    assert (reply.text, reply.finish_reason) == (SAID, "stop")
    assert (reply.input_tokens, reply.cached_input_tokens) == (1000, 400)
    assert (reply.output_tokens, reply.reasoning_tokens) == (350, 300)
    # 1.25 and 10.00 dollars per million; read from the cache 0.125
    assert reply.cost_usd == pytest.approx(600 * 1.25e-6 + 400 * 0.125e-6 + 350 * 10e-6)


@pytest.mark.parametrize("reason", ["SAFETY", "PROHIBITED_CONTENT", "RECITATION"])
def test_what_gemini_holds_back_is_filtered(wire: Wire, reason: str) -> None:
    held_back = wire.reply(GEMINI, _gemini(reason))
    assert (held_back.text, held_back.finish_reason) == (None, "content_filter")
    assert held_back.input_tokens == 1000
    blocked = wire.reply(
        GEMINI,
        {
            "promptFeedback": {"blockReason": reason},
            "usageMetadata": {"promptTokenCount": 1000, "totalTokenCount": 1000},
        },
    )
    assert (blocked.text, blocked.finish_reason) == (None, "content_filter")


def test_ollama_counts_in_words_of_its_own_and_has_no_known_price(wire: Wire) -> None:
    message = {"role": "assistant", "content": SAID, "thinking": "let me see"}
    body = {"model": "llama3", "message": message, "done": True, "prompt_eval_count": 1000, "eval_count": 50}
    reply = wire.reply(OLLAMA, {**body, "done_reason": "length"})
    assert (reply.text, reply.finish_reason) == (SAID, "length")
    assert (reply.input_tokens, reply.output_tokens, reply.cost_usd) == (1000, 50, None)


def test_azure_is_sent_its_key_and_says_what_it_filtered(wire: Wire) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "content_filter"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 400}}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini", "choices": [choice]}
    reply = wire.reply(AZURE, {**body, "usage": usage})
    assert wire.server.sent[0].headers["api-key"] == KEY
    assert (reply.text, reply.finish_reason, reply.cached_input_tokens) == (None, "content_filter", 400)
    # 0.15 dollars per million; read from the cache 0.075 (Azure's own entry of the table)
    assert reply.cost_usd == pytest.approx(600 * 0.15e-6 + 400 * 0.075e-6)
    refusal = {"message": "The prompt was filtered", "code": "content_filter", "param": "prompt"}
    filtered = wire.ask(AZURE, {"error": refusal}, 400)
    assert isinstance(filtered, Reply)
    assert (filtered.text, filtered.finish_reason, filtered.attempts) == (None, "content_filter", 1)


@pytest.mark.parametrize(
    ("status", "kind", "attempts"),
    [
        (401, "authentication", 1),
        (404, "not_found", 1),
        (400, "bad_request", 1),
        (429, "rate_limit", 2),
        (500, "server", 2),
    ],
)
@pytest.mark.parametrize("model", [CLAUDE, GEMINI, AZURE, OLLAMA])
def test_an_error_is_its_status_in_every_language(
    wire: Wire, model: str, status: int, kind: str, attempts: int
) -> None:
    words = f"something about the key {KEY}"
    error = words if model == OLLAMA else {"type": "some_error", "message": words, "code": status}
    failure = wire.ask(model, {"type": "error", "error": error}, status)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.attempts) == (kind, attempts)
    assert failure.message.startswith(f"HTTP {status}: ")
    assert "something about the key" in failure.message
    assert KEY not in failure.message


@pytest.mark.parametrize(
    ("model", "words", "kind"),
    [
        (CLAUDE, "prompt is too long: 210000 tokens > 200000 maximum", "context_length"),
        (GEMINI, "The input token count (9) exceeds the maximum number of tokens allowed (8).", "context_length"),
        (GEMINI, "API key not valid. Please pass a valid API key.", "authentication"),
    ],
)
def test_what_a_provider_says_with_400_is_told_apart(wire: Wire, model: str, words: str, kind: str) -> None:
    failure = wire.ask(model, {"type": "error", "error": {"type": "invalid_request_error", "message": words}}, 400)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.attempts, failure.message) == (kind, 1, f"HTTP 400: {words}")


@pytest.mark.parametrize("model", [CLAUDE, GEMINI, AZURE, OLLAMA])
def test_an_answer_in_no_known_language_is_said_to_be_unreadable(wire: Wire, model: str) -> None:
    failure = wire.ask(model, {})
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.attempts) == ("malformed_response", 2)
    assert failure.message == "the reply holds no choice with a message: {}"
