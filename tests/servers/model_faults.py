"""The ways in which the model server misbehaves, by the names that rules give them."""

import asyncio
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import cache, reduce
from typing import Any

from aiohttp import web

from tests.servers.model_answers import JSON, begin_stream, completion, completion_chunks, send_chunks, stream
from tests.servers.model_rule import Rule

Fault = Callable[[web.BaseRequest, Rule, Mapping[str, Any], Mapping[str, Any]], Any]


def _error(status: int, kind: str, code: str | None, message: str) -> Fault:
    """An answer with an error in OpenAI's form; the fault's `message`, `headers`, `retry_after` are put in if given."""

    async def answer(_: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]) -> web.Response:
        headers = dict(fault.get("headers", {}))
        if "retry_after" in fault:
            headers["Retry-After"] = str(fault["retry_after"])
        error = {"message": fault.get("message", message), "type": kind, "param": None, "code": code}
        return web.json_response({"error": error}, status=fault.get("status", status), headers=headers)

    return answer


def _body(make: Callable[[Rule, Mapping[str, Any]], bytes], content_type: str = JSON) -> Fault:
    """An answer with status 200 and a body that should not be."""

    async def answer(_: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]) -> web.Response:
        return web.Response(body=make(rule, body), content_type=content_type)

    return answer


async def _given(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """The fault's `body` as JSON, with its `status`; a list is the pieces of a stream."""
    said = fault["body"]
    if isinstance(said, list) and body.get("stream"):
        return await stream(request, said, 0.0)
    return web.json_response(said, status=fault.get("status", 200))


async def _hang(_: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


async def _drop(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=499)


async def _truncated(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    whole = completion(rule, body)
    response = web.StreamResponse(headers={"Content-Length": str(len(whole)), "Content-Type": JSON})
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


async def _slow_drip(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """White space now and then, which is valid JSON so far and never lets a read time out."""
    response = web.StreamResponse(headers={"Content-Type": JSON})
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(fault.get("every", 0.02))


async def _stream_cut(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """The beginning of a stream; then the connection is gone."""
    response = await begin_stream(request)
    await send_chunks(response, completion_chunks(rule, body)[:2])
    if request.transport is not None:
        request.transport.close()
    return response


async def _stream_ended(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """The beginning of a stream, which ends in good order before the answer does."""
    response = await begin_stream(request)
    await send_chunks(response, completion_chunks(rule, body)[:2])
    return response


async def _stream_error(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """The beginning of a stream, and an error with the fault's `code` in place of the rest."""
    response = await begin_stream(request)
    error = {"message": "the engine stopped", "type": "server_error", "code": fault.get("code")}
    await send_chunks(response, [*completion_chunks(rule, body)[:2], {"error": error}])
    return response


async def _stream_silent(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """The beginning of a stream, and no more."""
    await send_chunks(await begin_stream(request), completion_chunks(rule, body)[:2])
    return await _hang(request, rule, body, fault)


async def _stream_endless(
    request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]
) -> web.StreamResponse:
    """A stream that always has one more piece."""
    response = await begin_stream(request)
    while True:
        await send_chunks(response, completion_chunks(rule, body)[1:2], fault.get("every", 0.02))


async def _gzip_bomb(request: web.BaseRequest, rule: Rule, body: Mapping[str, Any], fault: Mapping[str, Any]) -> Any:
    """A gigabyte of blanks, or as many `megabytes`, packed into a thousandth of that."""
    packed = _packed_blanks(fault.get("megabytes", 1024))
    return web.Response(body=packed, headers={"Content-Encoding": "gzip", "Content-Type": JSON})


@cache
def _packed_blanks(megabytes: int) -> bytes:
    """A gzip file whose content is one packed megabyte again and again: packing them all would take seconds."""
    blanks, packer = b" " * 2**20, zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = packer.compress(blanks) + packer.flush(zlib.Z_FULL_FLUSH)  # which refers to nothing before it
    checksum = reduce(lambda so_far, _: zlib.crc32(blanks, so_far), range(megabytes), 0)
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    return head + packed * megabytes + packer.flush() + struct.pack("<LL", checksum, megabytes * 2**20)


FAULTS: Mapping[str, Fault] = {
    "rate_limit": _error(429, "rate_limit_exceeded", "rate_limit_exceeded", "Rate limit reached"),
    "server_error": _error(500, "server_error", None, "The server had an error"),
    "unauthorized": _error(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided"),
    "forbidden": _error(403, "invalid_request_error", None, "You are not allowed to use this model"),
    "not_found": _error(404, "invalid_request_error", "model_not_found", "The model does not exist"),
    "bad_request": _error(400, "invalid_request_error", None, "Unsupported value"),
    "context_length": _error(
        400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is 8192 tokens"
    ),
    "content_policy": _error(
        400, "invalid_request_error", "content_policy_violation", "Your request was rejected by the safety system"
    ),
    "content_filter_code": _error(400, "invalid_request_error", "content_filter", "The prompt was filtered"),
    "no_credit": _error(429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota"),
    "payment": _error(402, "payment_required", None, "Insufficient balance"),
    "body": _given,
    "hang": _hang,
    "drop": _drop,
    "truncated": _truncated,
    "slow_drip": _slow_drip,
    "stream_cut": _stream_cut,
    "stream_ended": _stream_ended,
    "stream_error": _stream_error,
    "stream_silent": _stream_silent,
    "stream_endless": _stream_endless,
    "gzip_bomb": _gzip_bomb,
    "huge": _body(lambda rule, body: completion(Rule(reply="?"), body).replace(b"?", b"x" * 50 * 2**20)),
    "invalid_utf8": _body(lambda rule, body: completion(Rule(reply="BLOCK?"), body).replace(b"?", b"\xff\xfe\xc3")),
    "empty_body": _body(lambda rule, body: b""),
    "html": _body(lambda rule, body: b"<html><body>Bad gateway</body></html>", "text/html"),
    "garbage": _body(lambda rule, body: b"\xff\xfe{not json"),
    "wrong_json": _body(lambda rule, body: b'{"hello": ["world"]}'),
    "json_array": _body(lambda rule, body: b"[1, 2, 3]"),
    "deep_json": _body(lambda rule, body: b"[" * 100_000),
    "empty_choices": _body(lambda rule, body: completion(rule, body, choices=[])),
    "null_choices": _body(lambda rule, body: completion(rule, body, choices=None)),
    "no_message": _body(lambda rule, body: completion(rule, body, choices=[{"index": 0, "finish_reason": "stop"}])),
    "message_text": _body(lambda rule, body: completion(rule, body, choices=[{"index": 0, "message": "BLOCK"}])),
    "content_object": _body(lambda rule, body: completion(Rule(reply=None, message={"content": {"a": 1}}), body)),
    "null_content": _body(lambda rule, body: completion(Rule(reply=None), body)),
    "content_filter": _body(lambda rule, body: completion(Rule(reply=None, finish_reason="content_filter"), body)),
}
