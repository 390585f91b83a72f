"""A function of a user's process as a model: its replies are text, and what it raises is a failed call."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from evalake.core.redaction import redact
from evalake.models.request import BaselineRefusedError, Failure, Messages, Reply, Request

LONGEST_MESSAGE = 500


@dataclass(frozen=True)
class Function:
    """A function that maps a sample's input to a reply, and the threads that call it."""

    function: Callable[[str], str]
    threads: Executor

    def __call__(self, messages: Messages) -> str:
        """Answer the last message. Raises TypeError where the function returns no text."""
        text = self.function(messages[-1]["content"])
        if not isinstance(text, str):
            raise TypeError(f"the function returned {type(text).__name__}: return text")
        text.encode()  # a lone surrogate cannot be kept
        return text

    async def answer(self, request: Request) -> Reply | Failure:
        """Answer a request on a thread of its own. Tokens and cost are unknown."""
        try:
            text, seconds = await asyncio.get_running_loop().run_in_executor(self.threads, self._timed, request)
        except Exception as error:  # noqa: BLE001 - a user's function may raise any exception
            return Failure("server", redact(f"{type(error).__name__}: {error}")[:LONGEST_MESSAGE], 1)
        return Reply(text, finish_reason="stop", model_reported=request.model, latency_ms=seconds * 1000)

    def _timed(self, request: Request) -> tuple[str, float]:
        begun = time.perf_counter()
        return self(request.messages), time.perf_counter() - begun


def absent(messages: Messages) -> str:
    """Stand for a function of another process. Raises BaselineRefusedError."""
    raise BaselineRefusedError("only the process with the function can ask it: call `evalake.evaluate` there again")
