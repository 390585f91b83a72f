"""Where this process is in a run: fields on every log record and, where EVALAKE_TELEMETRY=1, OpenTelemetry spans.

    with scope("evaluate …", run_id="…", suite="…"):
        trace = current_trace()          # to be handed to other threads, processes and machines
        with scope("batch …", parent=trace, batch="…", model="…"):
            record_call(request, route, reply, begun)

Spans and metrics of calls are named by OpenTelemetry's conventions for generative AI. Prompts and replies are in none
of them. Switched off, its SDK is not imported. The SDK's own OTEL_* variables set where and how they are sent.
"""

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from evalake.core.errors import ConfigurationError
from evalake.models.request import Failure, Reply, Request
from evalake.models.routes import Route

if TYPE_CHECKING:
    from evalake.models.instruments import Instruments

SWITCH = "EVALAKE_TELEMETRY"

logger = logging.getLogger("evalake.calls")

_place: ContextVar[Mapping[str, str]] = ContextVar("place", default=MappingProxyType({}))


def place() -> Mapping[str, str]:
    """Return the fields of the scopes around this line, such as run_id, suite, batch and model."""
    return _place.get()


@contextmanager
def scope(name: str, *, parent: str | None = None, **fields: str) -> Iterator[None]:
    """Add fields to the log records of a block; where telemetry is on, open a span around it.

    `parent` is the trace that `current_trace` gave, where the scope around this one is in another thread or process.
    """
    instruments = _instruments()
    token = _place.set({**_place.get(), **fields})
    try:
        with instruments.span(name, parent, fields) if instruments else nullcontext():
            yield
    finally:
        _place.reset(token)


def current_trace() -> str | None:
    """Name the span around this line, in W3C's `traceparent` form; None where telemetry is off."""
    instruments = _instruments()
    return instruments.traceparent() if instruments else None


def record_call(request: Request, route: Route, outcome: Reply | Failure, begun: int) -> None:
    """Record in logs, traces and metrics how a call ended.

    `begun` is when its first attempt began, in nanoseconds since 1970; 0 where none was made.
    """
    if isinstance(outcome, Failure):
        said = request.model, outcome.attempts, outcome.kind, outcome.message
        logger.info("a call of %s was given up on after %d attempts (%s): %s", *said)
    if (instruments := _instruments()) is not None:
        instruments.record(request, route, outcome, begun, time.time_ns())


def flush() -> None:
    """Send what has not been sent yet, for at most a few seconds."""
    if (instruments := _instruments()) is not None:
        instruments.flush()


@cache
def _instruments() -> "Instruments | None":
    if (wanted := os.environ.get(SWITCH) or "0") not in ("0", "1"):
        raise ConfigurationError(f"{SWITCH} is 1, or not set: not {wanted}")
    if wanted == "0":
        return None
    try:
        from evalake.models.instruments import Instruments
    except ImportError as error:
        raise ConfigurationError(
            f"{SWITCH} is set, but OpenTelemetry is not installed: add evalake[telemetry]"
        ) from error
    return Instruments()
