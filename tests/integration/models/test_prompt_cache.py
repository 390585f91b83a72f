"""What is marked for providers to keep, and what is not."""

from typing import Any

import pytest

from evalake.models.cost import messages_of
from evalake.models.request import Request

OPENING = ({"role": "system", "content": "You judge."}, {"role": "user", "content": "a long session"})
TURNS = (*OPENING, {"role": "assistant", "content": "50"}, {"role": "user", "content": "which tools are missing?"})


def marked(model: str, messages: Any = TURNS, cache_prompt: bool = True) -> list[str]:
    """The texts that are marked, all messages being there in order."""
    sent = messages_of(Request(model, messages, {}, cache_prompt=cache_prompt), model.partition("/")[0])
    texts = [m["content"] if isinstance(m["content"], str) else m["content"][0]["text"] for m in sent]
    assert texts == [message["content"] for message in messages]
    blocks = [block for m in sent if isinstance(m["content"], list) for block in m["content"]]
    assert all(block["cache_control"] == {"type": "ephemeral"} for block in blocks)
    return [block["text"] for block in blocks]


@pytest.mark.parametrize(
    "model",
    [
        "anthropic/claude-opus-4-5",
        "openrouter/anthropic/claude-opus-4.5",
        "bedrock/eu.anthropic.claude-opus-4-5-v1:0",
        "vertex_ai/claude-opus-4-5@20251101",
    ],
)
def test_what_every_turn_begins_with_is_marked_alike_in_every_turn(model: str) -> None:
    assert marked(model, OPENING) == marked(model) == ["You judge.", "a long session"]


@pytest.mark.parametrize("model", ["bedrock/anthropic.claude-v2:1", "vertex_ai/claude-3-opus@20240229"])
def test_an_old_model_that_cannot_keep_a_prompt_is_told_nothing(model: str) -> None:
    assert marked(model) == []


@pytest.mark.parametrize(
    "model", ["openai/gpt-5.2", "gemini/gemini-3-pro", "bedrock/meta.llama3", "hosted_vllm/claude"]
)
def test_who_finds_it_himself_is_told_nothing(model: str) -> None:
    assert marked(model) == []


def test_nothing_is_marked_where_no_further_turn_is_likely() -> None:
    assert marked("anthropic/claude-opus-4-5", cache_prompt=False) == []


def test_an_empty_text_gets_no_mark() -> None:
    assert marked("anthropic/claude-opus-4-5", ({"role": "system", "content": ""}, *OPENING[1:])) == ["a long session"]
