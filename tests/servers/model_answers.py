"""The answers that a rule asks for: whole in OpenAI's or Anthropic's form, in pieces in OpenAI's."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from tests.servers.model_rule import Rule

JSON = "application/json"
_BASE = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000}


def completion(rule: Rule, body: Mapping[str, Any], **change: Any) -> bytes:
    """The JSON of a chat completion as the rule says; `change` replaces fields of it."""
    text = rule.reply(body["messages"]) if callable(rule.reply) else rule.reply
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **rule.message},
        "finish_reason": rule.finish_reason,
    }
    whole = {**_BASE, "model": body["model"], "choices": [choice], **change}
    if rule.usage is not None:
        whole["usage"] = dict(rule.usage)
    return json.dumps(whole).encode()


def anthropic_message(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The same answer in Anthropic's form."""
    text, usage = answer["choices"][0]["message"]["content"], answer["usage"]
    return {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": answer["model"],
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]},
    }


def completion_chunks(rule: Rule, body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The chunks of a streamed chat completion as the rule says, with the usage where it is asked for."""
    whole = json.loads(completion(rule, body))
    message, text = whole["choices"][0]["message"], whole["choices"][0]["message"].pop("content") or ""
    length = max(1, -(-len(text) // rule.pieces))
    deltas = [
        {**message, "content": None},
        *({"content": text[at : at + length]} for at in range(0, len(text), length)),
    ]
    chunk = {**_BASE, "object": "chat.completion.chunk", "model": body["model"]}
    said: list[Mapping[str, Any]]
    said = [{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    said.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": rule.finish_reason}]})
    if rule.usage is not None and (body.get("stream_options") or {}).get("include_usage"):
        said.append({**chunk, "choices": [], "usage": dict(rule.usage)})
    return said


async def begin_stream(request: web.BaseRequest) -> web.StreamResponse:
    """Send the head of a stream of events; what is written to the response then follows it."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    return response


async def send_chunks(response: web.StreamResponse, chunks: Sequence[Mapping[str, Any]], pause: float = 0.0) -> None:
    """Send chunks as events, after a pause before each where one is asked for."""
    for chunk in chunks:
        if pause:
            await asyncio.sleep(pause)
        await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")


async def stream(request: web.BaseRequest, chunks: Sequence[Mapping[str, Any]], pause: float) -> web.StreamResponse:
    """Answer with chunks and the mark of their end."""
    response = await begin_stream(request)
    await send_chunks(response, chunks, pause)
    await response.write(b"data: [DONE]\n\n")
    return response
