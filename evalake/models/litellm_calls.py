"""Makes calls by `litellm.acompletion`, for providers, parameters and messages that `direct.py` does not support."""

import asyncio
import time
from collections.abc import AsyncIterable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from evalake.models import litellm_internals as internals
from evalake.models.cost import messages_of
from evalake.models.failures import AttemptFailed, require_no_failure
from evalake.models.litellm_setup import load, warm_up
from evalake.models.replies import ProviderAnswer, read_answer
from evalake.models.request import Request
from evalake.models.routes import Route
from evalake.models.streams import MOST_PIECES, STREAMED, StreamedAnswer, tells_its_end
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
        timing.sent = time.perf_counter()
        try:
            response: Any = await load().acompletion(
                model=route.model,
                messages=messages_of(request, route.provider),
                timeout=timeout_seconds,
                num_retries=0,
                max_retries=0,
                **route.arguments,
                **{**({"stream": True, **STREAMED} if stream else {}), **request.parameters},
            )
            if isinstance(response, AsyncIterable):
                return await _read_pieces(response, timing, on_data)
        except Exception as error:
            if (response := internals.refused_answer(error)) is None:
                raise
        finally:
            timing.ended = time.perf_counter()
        require_no_failure(response)
        return read_answer(response, route)


async def _read_pieces(stream: Any, timing: Timing, on_data: Callable[[], None]) -> ProviderAnswer:
    """Read a `litellm.CustomStreamWrapper` by its `chunks`: the pieces that it yields always end in "stop"."""
    keeps_reason = internals.keeps_reasons(stream)
    try:
        async with aclosing(stream):
            async for _ in stream:
                timing.first_byte = timing.first_byte or time.perf_counter()
                on_data()
                if len(stream.chunks) > MOST_PIECES:
                    break
    except Exception as error:
        if not internals.is_refused_count(error):
            raise
    whole = StreamedAnswer()
    for piece in stream.chunks:
        whole.add(piece)
    answer = replace(whole.answer(), model=None)  # LiteLLM repeats the requested name there
    if keeps_reason:
        reason = stream.received_finish_reason
        require_no_failure({"choices": [{"finish_reason": reason}]}, during="in the middle of the answer")
        return answer
    message = answer.message
    said = message.text or message.reasoning or message.refusal or message.tool_calls
    if not said and answer.finish_reason == "stop":  # LiteLLM's "stop" may hide an error
        raise AttemptFailed("malformed_response", "the streamed answer has no content")
    return answer
