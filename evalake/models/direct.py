"""Calls that LiteLLM's provider classes describe and our transport carries, without LiteLLM's own way in between.

Every provider that is not in the table of `direct_models.py`, and every parameter beyond PARAMETERS, goes by
`litellm.acompletion`. EVALAKE_DIRECT_CALLS=0 sends everything that way.
"""

import asyncio
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalake.core.errors import ConfigurationError
from evalake.core.hashing import canonical_json
from evalake.models import litellm_internals as internals
from evalake.models.direct_models import DIRECT, DirectModel, encoded
from evalake.models.failures import AttemptFailed, classify_error, excerpt, require_no_failure
from evalake.models.prompt_cache import messages_of
from evalake.models.replies import ProviderAnswer, cost_of_unread, read_answer
from evalake.models.request import Request
from evalake.models.routes import Route
from evalake.models.streams import Whole, read_events
from evalake.models.transport import LARGEST_REPLY, LARGEST_STREAM, Answer, Timing, Transport
from evalake.models.trust import HARMLESS_PARAMETERS

if TYPE_CHECKING:
    import httpx

SWITCH = "EVALAKE_DIRECT_CALLS"
OK, MULTIPLE_CHOICES = 200, 300
LONGEST_SHOWN = 1000  # bytes of an answer that is no JSON
WHOLE = "application/json"  # the content type of an answer that came at once, though a stream was asked for
PIECES_AT_ONCE = 64  # read before other tasks of the loop run

# Those for which the test holds both ways equal
PARAMETERS = HARMLESS_PARAMETERS | {
    *("extra_body", "extra_headers", "logit_bias", "max_completion_tokens", "max_tokens", "n"),
    *("reasoning_effort", "thinking", "verbosity"),
}
_ROLES = frozenset({"system", "user", "assistant"})
_UNPACKED = frozenset({"content-encoding", "content-length", "transfer-encoding"})  # no longer true of what is read


class DirectCalls:
    """The calls of one client that need not go through LiteLLM's own way. Made and used on one event loop."""

    def __init__(self) -> None:
        self._transport = Transport()
        self._on = switched_on()
        self._models: dict[tuple[str, bool, bytes], DirectModel | None] = {}

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    def model(self, request: Request, route: Route) -> DirectModel | None:
        """Look up how to ask the request's model directly; None where `litellm.acompletion` has to make the call.

        Raises what LiteLLM raises for parameters that the provider does not take.
        """
        if not self._on or not _plain(request.messages):
            return None
        key = (route.model, request.stream, canonical_json(dict(request.parameters)))
        if key not in self._models:
            self._models[key] = _direct_model(route, request.parameters, request.stream)
        return self._models[key]

    async def ask(
        self, model: DirectModel, request: Request, timing: Timing, heard: Callable[[], None]
    ) -> ProviderAnswer:
        """Send a request and read its answer; raises AttemptFailed or an exception that `classify_error` reads.

        `heard` is called whenever some of the answer has come.
        """
        messages = messages_of(request, model.provider)
        address, headers, body = model.request(messages)
        largest = LARGEST_STREAM if model.streams else LARGEST_REPLY
        received = await self._transport.post(address, headers, encoded(body), timing, heard, largest)
        if not OK <= received.status < MULTIPLE_CHOICES:
            answer = _as_httpx(address, received)
            raise internals.as_litellm_error(model.provider, model.model, model.settings, answer)
        if model.streams and _content_type(received) != WHOLE:
            return await _read_stream(model, received.body)
        said = _json(received.body)
        try:
            require_no_failure(said)
            if model.answers_like_openai:
                return read_answer(said, model.route)
            return read_answer(model.read(_as_httpx(address, received), body, messages), model.route)
        except AttemptFailed as failure:
            if failure.cost_usd is None:
                failure.cost_usd = cost_of_unread(said, model.route)
            raise
        except Exception as error:  # LiteLLM's readers may raise anything for what a provider sends
            cost = cost_of_unread(said, model.route)
            raise AttemptFailed("malformed_response", classify_error(error).message, cost_usd=cost) from error


async def _read_stream(model: DirectModel, body: bytes) -> ProviderAnswer:
    """Read an answer in pieces; other tasks of the loop run now and then."""
    reader, whole = None if model.answers_like_openai else model.pieces(), Whole()
    try:
        for number, said in enumerate(read_events(body), start=1):
            require_no_failure(said, during="in the middle of the answer")
            whole.add(said if reader is None else model.read_piece(reader, said))
            if number % PIECES_AT_ONCE == 0:
                await asyncio.sleep(0)
    except AttemptFailed:
        raise
    except Exception as error:  # as above
        raise AttemptFailed("malformed_response", classify_error(error).message) from error
    return whole.answer()


def _content_type(answer: Answer) -> str:
    named = {name.lower(): value for name, value in answer.headers.items()}
    return str(named.get("content-type", "")).partition(";")[0].strip()


def _json(body: bytes) -> Any:
    """Read the body of an answer; raises AttemptFailed where it is no JSON, with what it is."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        words = excerpt(body[:LONGEST_SHOWN].decode("utf-8", "replace")) or "nothing"
        raise AttemptFailed("malformed_response", f"an answer of status 200 that is no JSON: {words}") from error


def warm_up() -> None:
    """Make and read one call without a network, so that no real one waits for what LiteLLM imports on its first."""
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
    """Tell whether calls may go directly; raises ConfigurationError for a switch that is neither on nor off."""
    if (wanted := os.environ.get(SWITCH) or "1") not in ("0", "1"):
        raise ConfigurationError(f"{SWITCH} is 0, 1, or not set: not {wanted}")
    return wanted == "1"


def _plain(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether all messages are texts of the usual roles."""
    return all(message["role"] in _ROLES and len(message) == 2 and "content" in message for message in messages)


def _direct_model(route: Route, parameters: Mapping[str, Any], stream: bool) -> DirectModel | None:
    kind = DIRECT.get(route.provider)
    if kind is None or not parameters.keys() <= PARAMETERS or not kind.possible(route):
        return None
    model = kind(route, parameters, stream)
    return model if internals.takes_chat(model.provider, model.model, parameters) else None


def _as_httpx(address: str, answer: Answer) -> "httpx.Response":
    """Convert the answer to the form that LiteLLM's classes read."""
    import httpx

    headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in _UNPACKED]
    return httpx.Response(answer.status, headers=headers, content=answer.body, request=httpx.Request("POST", address))
