"""Makes calls with LiteLLM's provider classes and our own transport, for several times the calls per second.

Providers outside the table of `direct_models.py` and parameters outside PARAMETERS use `litellm.acompletion`.
EVALAKE_DIRECT_CALLS=0 makes all calls by it.
"""

import asyncio
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalake.core.errors import ConfigurationError
from evalake.core.hashing import canonical_json
from evalake.models import litellm_internals as internals
from evalake.models.cost import messages_of
from evalake.models.direct_models import DIRECT, DirectModel, encoded
from evalake.models.endpoints import HARMLESS_PARAMETERS
from evalake.models.failures import AttemptFailed, classify_error, excerpt, require_no_failure
from evalake.models.replies import ProviderAnswer, as_stated, cost_of_unread, read_answer
from evalake.models.request import Request
from evalake.models.routes import Route
from evalake.models.streams import MIDDLE, StreamedAnswer, read_events
from evalake.models.transport import LARGEST_REPLY, LARGEST_STREAM, Answer, Timing, Transport

if TYPE_CHECKING:
    import httpx

SWITCH = "EVALAKE_DIRECT_CALLS"
OK, MULTIPLE_CHOICES = 200, 300
LONGEST_SHOWN = 1000  # bytes of an answer that is not JSON
WHOLE = "application/json"  # the content type of an answer that is not streamed
PIECES_AT_ONCE = 64  # read before other tasks of the loop run

# A test proves both ways equal for these
PARAMETERS = HARMLESS_PARAMETERS | {
    *("extra_body", "extra_headers", "logit_bias", "max_completion_tokens", "max_tokens", "n"),
    *("reasoning_effort", "thinking", "verbosity"),
}
_ROLES = frozenset({"system", "user", "assistant"})
_UNPACKED = frozenset({"content-encoding", "content-length", "transfer-encoding"})  # wrong for an unpacked body


class DirectCalls:
    """The direct calls of one client, on one event loop."""

    def __init__(self) -> None:
        self._transport = Transport()
        self._on = switched_on()
        self._models: dict[tuple[str, bool, bytes], DirectModel | None] = {}

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    def model(self, request: Request, route: Route) -> DirectModel | None:
        """Return the request's direct model; None where `litellm.acompletion` has to make the call.

        Raises LiteLLM's errors for parameters that the provider does not support.
        """
        if not self._on or not _plain(request.messages):
            return None
        key = (route.model, request.stream, canonical_json(dict(request.parameters)))
        if key not in self._models:
            kind, model = DIRECT.get(route.provider), None
            if kind is not None and request.parameters.keys() <= PARAMETERS and kind.possible(route):
                model = kind(route, request.parameters, request.stream)
            supported = model and internals.takes_chat(model.provider, model.model, request.parameters)
            self._models[key] = model if supported else None
        return self._models[key]

    async def ask(
        self, model: DirectModel, request: Request, timing: Timing, on_data: Callable[[], None]
    ) -> ProviderAnswer:
        """Send a request and read its answer; raises AttemptFailed or an exception for `classify_error`.

        `on_data` is called after each part of the answer.
        """
        messages = messages_of(request, model.provider)
        address, headers, body = model.request(messages)
        largest = LARGEST_STREAM if model.streams else LARGEST_REPLY
        received = await self._transport.post(address, headers, encoded(body), timing, on_data, largest)
        if not OK <= received.status < MULTIPLE_CHOICES:
            answer = _as_httpx(address, received)
            raise internals.as_litellm_error(model.provider, model.model, model.settings, answer)
        headers = {name.lower(): value for name, value in received.headers.items()}
        if model.streams and headers.get("content-type", "").partition(";")[0].strip() != WHOLE:
            return await _read_stream(model, received.body)
        return read_whole(model, received, body, messages)


def read_whole(
    model: DirectModel, received: Answer, body: Mapping[str, Any], messages: internals.Messages
) -> ProviderAnswer:
    """Read an answer of status 200 that was not streamed. Raises AttemptFailed where it is none."""
    content = _json(received.body)
    try:
        require_no_failure(content)
        if model.answers_like_openai:
            return read_answer(content, model.route)
        if content and (missing := {name: each for name, each in model.needs.items() if not content.get(name)}):
            received = replace(received, body=encoded({**content, **missing}))
        read = read_answer(model.read(_as_httpx("http://answer.invalid", received), body, messages), model.route)
        return as_stated(read, content)
    except AttemptFailed as failure:
        if failure.cost_usd is None:
            failure.cost_usd = cost_of_unread(content, model.route)
        raise
    except Exception as error:  # LiteLLM may raise any exception
        cost = cost_of_unread(content, model.route)
        raise AttemptFailed("malformed_response", classify_error(error).message, cost_usd=cost) from error


async def _read_stream(model: DirectModel, body: bytes) -> ProviderAnswer:
    """Read a streamed answer; other tasks of the loop run in between."""
    reader, answer = None if model.answers_like_openai else model.pieces(), StreamedAnswer()
    try:
        for number, piece in enumerate(read_events(body), start=1):
            if reader is None:
                answer.add(piece)
            else:
                require_no_failure(piece, during=MIDDLE)  # LiteLLM's error has other words
                answer.add(model.read_piece(reader, piece), piece)
            if number % PIECES_AT_ONCE == 0:
                await asyncio.sleep(0)
    except AttemptFailed:
        raise
    except Exception as error:  # LiteLLM may raise any exception
        raise AttemptFailed("malformed_response", classify_error(error).message) from error
    return answer.answer()


def _json(body: bytes) -> Any:
    """Read the body of an answer; raises AttemptFailed, which quotes it, where it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        words = excerpt(body[:LONGEST_SHOWN].decode("utf-8", "replace")) or "nothing"
        raise AttemptFailed("malformed_response", f"an answer of status 200 that is not JSON: {words}") from error


def warm_up() -> None:
    """Make and read one call without a network, for LiteLLM's imports at the first call."""
    with warnings.catch_warnings(action="ignore"):
        model = DIRECT["hosted_vllm"](
            Route("hosted_vllm/none", "hosted_vllm", {"api_base": "http://none.invalid"}, None), {}
        )
        internals.takes_chat(model.provider, model.model, {})
        messages: internals.Messages = [{"role": "user", "content": ""}]
        address, _, body = model.request(messages)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ""}}
        answer = Answer(200, {}, encoded({"model": "", "choices": [choice], "usage": {}}))
        model.read(_as_httpx(address, answer), body, messages)
        model.pieces().chunk_parser({"choices": [{"index": 0, "delta": {"content": ""}}], "usage": {}})


def switched_on() -> bool:
    """Tell whether direct calls are on. Raises ConfigurationError for another value than 0 and 1."""
    if (wanted := os.environ.get(SWITCH) or "1") not in ("0", "1"):
        raise ConfigurationError(f"{SWITCH} must be 0, 1, or unset, not {wanted}")
    return wanted == "1"


def _plain(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether all messages are texts of system, user and assistant."""
    return all(message["role"] in _ROLES and len(message) == 2 and "content" in message for message in messages)


def _as_httpx(address: str, answer: Answer) -> "httpx.Response":
    """Convert the answer for LiteLLM's classes."""
    import httpx

    headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in _UNPACKED]
    return httpx.Response(answer.status, headers=headers, content=answer.body, request=httpx.Request("POST", address))
