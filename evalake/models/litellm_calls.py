"""Makes calls by `litellm.acompletion`, for providers, parameters and messages that `direct.py` does not support."""

import asyncio
import json
import time
from collections.abc import AsyncIterable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from evalake.models import litellm_internals as internals
from evalake.models.cost import messages_of
from evalake.models.direct_models import DIRECT
from evalake.models.failures import AttemptFailed, first_of, http_answer, require_no_failure
from evalake.models.litellm_setup import load, warm_up
from evalake.models.replies import ProviderAnswer, as_stated, read_answer
from evalake.models.request import Request
from evalake.models.routes import Route
from evalake.models.streams import END, MIDDLE, MOST_PIECES, STREAMED, StreamedAnswer, said_in, tells_its_end
from evalake.models.transport import Timing


class LiteLLMCalls:
    """The calls of one client through LiteLLM, on one event loop."""

    def __init__(self) -> None:
        self._warm_up: asyncio.Task[None] | None = None

    async def ask(
        self, request: Request, route: Route, timeout_seconds: float, timing: Timing, on_data: Callable[[], None]
    ) -> ProviderAnswer:
        """Send a request and read its answer; measures its beginning, its end, and the first piece of a stream."""
        if self._warm_up is None:
            self._warm_up = asyncio.create_task(warm_up())
        await asyncio.shield(self._warm_up)
        internals.spare_bookkeeping()
        stream = request.stream and tells_its_end(route.model)
        heard = internals.Heard()
        response: Any = None
        timing.sent = time.perf_counter()
        try:
            response = await load().acompletion(
                model=route.model,
                messages=messages_of(request, route.provider),
                timeout=timeout_seconds,
                num_retries=0,
                max_retries=0,
                logger_fn=heard,
                **route.arguments,
                **{**({"stream": True, **STREAMED} if stream else {}), **request.parameters},
            )
            if isinstance(response, AsyncIterable):
                return await _read_pieces(response, route, timing, on_data)
        except Exception as error:
            if heard.body is None or http_answer(error) is not None:
                raise
            require_no_failure(heard.body)
            if not (_like_openai(route) and first_of(heard.body, "choices")):
                raise
        finally:
            timing.ended = time.perf_counter()
        require_no_failure(response if heard.body is None else heard.body)
        if heard.body is None:
            return _not_hidden(read_answer(response, route))
        if _like_openai(route) and first_of(heard.body, "choices"):
            return read_answer(heard.body, route)
        return as_stated(read_answer(response, route), heard.body)


def _like_openai(route: Route) -> bool:
    """Tell whether an answer in OpenAI's form is read without LiteLLM's class, as by `direct.py`."""
    kind = DIRECT.get(route.provider)
    return kind is None or kind.answers_like_openai


async def _read_pieces(stream: Any, route: Route, timing: Timing, on_data: Callable[[], None]) -> ProviderAnswer:
    """Read a `litellm.CustomStreamWrapper` by the lines that it reads, or by its `chunks`.

    The pieces that it yields always end in "stop".
    """
    lines, whole, like_openai = internals.raw_lines(stream), StreamedAnswer(), _like_openai(route)
    async with aclosing(stream):
        async for line in stream if lines is None else lines:
            timing.first_byte = timing.first_byte or time.perf_counter()
            on_data()
            if lines is None:
                if len(stream.chunks) > MOST_PIECES:
                    break
                continue
            said = said_in(line.encode())
            if said == END:
                break
            if said:
                piece = json.loads(said)
                require_no_failure(piece, during=MIDDLE)
                if like_openai and "choices" in piece:
                    whole.add(piece)
                else:
                    whole.add(internals.read_piece(stream, piece), piece)
    if lines is not None:
        return whole.answer()
    for piece in stream.chunks:
        whole.add(piece)
    return _not_hidden(replace(whole.answer(), model=None))  # LiteLLM repeats the requested name there


def _not_hidden(answer: ProviderAnswer) -> ProviderAnswer:
    """Raise AttemptFailed for an empty answer that ended in "stop": LiteLLM's "stop" may hide an error."""
    message = answer.message
    said = message.text or message.reasoning or message.refusal or message.tool_calls
    if not said and answer.finish_reason == "stop":
        raise AttemptFailed("malformed_response", "the answer has no content, and LiteLLM hides how it ended")
    return answer
