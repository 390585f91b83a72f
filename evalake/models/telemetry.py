"""Fields of log records and, with EVALAKE_TELEMETRY=1, OpenTelemetry spans for the parts of a run.

    with scope("evaluate …", run_id="…", suite="…"):
        trace = current_trace()          # for other threads, processes and machines
        with scope("batch …", parent=trace, batch="…", model="…"):
            record_call(request, route, reply, begun)

Spans and metrics follow OpenTelemetry's conventions for generative AI, without prompts and replies. The SDK, which is
only imported when telemetry is on, reads its own OTEL_* variables.
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

_fields: ContextVar[Mapping[str, str]] = ContextVar("fields", default=MappingProxyType({}))


def current_fields() -> Mapping[str, str]:
    """Return the fields of the current scopes, like run_id, suite, batch and model."""
    return _fields.get()


@contextmanager
def scope(name: str, *, parent: str | None = None, **fields: str) -> Iterator[None]:
    """Add fields to the log records of a block and, with telemetry, open a span around it.

    `parent` is a `current_trace` of another thread or process.
    """
    instruments = _instruments()
    token = _fields.set({**_fields.get(), **fields})
    try:
        with instruments.span(name, parent, fields) if instruments else nullcontext():
            yield
    finally:
        _fields.reset(token)


def current_trace() -> str | None:
    """Return the current span in W3C's `traceparent` form; None without telemetry."""
    instruments = _instruments()
    return instruments.traceparent() if instruments else None


def record_call(request: Request, route: Route, outcome: Reply | Failure, begun: int) -> None:
    """Record the end of a call in logs, traces and metrics.

    `begun` is the time of its first attempt in nanoseconds since 1970, 0 without any attempt.
    """
    if isinstance(outcome, Failure):
        words = request.model, outcome.attempts, outcome.kind, outcome.message
        logger.info("a call of %s failed after %d attempts (%s): %s", *words)
    if (instruments := _instruments()) is not None:
        instruments.record(request, route, outcome, begun, time.time_ns())


def flush() -> None:
    """Send the waiting spans and metrics, within a few seconds."""
    if (instruments := _instruments()) is not None:
        instruments.flush()


@cache
def _instruments() -> "Instruments | None":
    if (wanted := os.environ.get(SWITCH) or "0") not in ("0", "1"):
        raise ConfigurationError(f"{SWITCH} must be 1 or unset, not {wanted}")
    if wanted == "0":
        return None
    try:
        from evalake.models.instruments import Instruments
    except ImportError as error:
        raise ConfigurationError(
            f"{SWITCH} is set, but OpenTelemetry is not installed: install evalake[telemetry]"
        ) from error
    return Instruments()
