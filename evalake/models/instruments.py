"""OpenTelemetry's tracer and histograms by its conventions for generative AI (gen_ai.*), sent as OTLP over HTTP."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from evalake.core.redaction import redact
from evalake.models.endpoints import KNOWN
from evalake.models.request import Failure, Reply, Request
from evalake.models.routes import Route

OPERATION = "chat"
EXPORT_SECONDS = 5.0  # limit of an export; the SDK's is ten, for spans, then for metrics

# The conventions' bucket boundaries in seconds and tokens
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)

_NUMBERS = ("max_tokens", "frequency_penalty", "presence_penalty", "seed", "temperature", "top_k", "top_p")
_PARAMETERS = {
    "max_completion_tokens": "gen_ai.request.max_tokens",
    **{name: f"gen_ai.request.{name}" for name in _NUMBERS},
}
_USAGE = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_input_tokens": "gen_ai.usage.cache_read.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
    "cost_usd": "evalake.cost_usd",
}

Attributes = dict[str, Any]


class Instruments:
    """The instruments of a process, which needs one. They send in the background and at the end of the process."""

    def __init__(self) -> None:
        # Not the global providers, which belong to an application around evalake
        resource = Resource.create(
            {SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", "evalake"), SERVICE_VERSION: version("evalake")}
        )
        self._traces = TracerProvider(resource=resource)
        self._traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=_longest("TRACES"))))
        metrics = OTLPMetricExporter(timeout=_longest("METRICS"))
        self._metrics = MeterProvider([PeriodicExportingMetricReader(metrics)], resource=resource)
        self._tracer = self._traces.get_tracer("evalake", version("evalake"))
        meter = self._metrics.get_meter("evalake", version("evalake"))
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKENS,
        )
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def span(self, name: str, parent: str | None, fields: Mapping[str, str]) -> Iterator[None]:
        """Open a span around a block, below `parent` or the current span."""
        context = self._propagator.extract({"traceparent": parent}) if parent else None
        attributes = {f"evalake.{field}": value for field, value in fields.items()}
        with self._tracer.start_as_current_span(
            name, context, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(Status(StatusCode.ERROR, redact(str(error))[:500]))
                raise

    def traceparent(self) -> str | None:
        """Format the current span as W3C's header."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get("traceparent")

    def record(self, request: Request, route: Route, outcome: Reply | Failure, begun: int, ended: int) -> None:
        """Record a finished call: its span, its duration and its tokens. Times are nanoseconds since 1970."""
        common = _common(route, outcome)
        attributes = {**common, **_of_request(request), **_of_outcome(outcome)}
        span = self._tracer.start_span(
            f"{OPERATION} {common['gen_ai.request.model']}",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=begun or ended,
        )
        if isinstance(outcome, Failure):
            span.set_status(Status(StatusCode.ERROR, outcome.message))
        span.end(ended)
        if not begun:
            return  # without any attempt
        self._duration.record((ended - begun) / 1e9, common)
        if isinstance(outcome, Reply):
            for kind, count in (("input", outcome.input_tokens), ("output", outcome.output_tokens)):
                if count is not None:
                    self._tokens.record(count, {**common, "gen_ai.token.type": kind})

    def flush(self) -> None:
        """Send the measurements; give up after EXPORT_SECONDS each for spans and metrics."""
        milliseconds = int(EXPORT_SECONDS * 1000)
        self._traces.force_flush(milliseconds)
        self._metrics.force_flush(milliseconds)


def _longest(signal: str) -> float | None:
    """Return the limit of an export in seconds; None where the SDK's own variables set it."""
    variables = {"OTEL_EXPORTER_OTLP_TIMEOUT", f"OTEL_EXPORTER_OTLP_{signal}_TIMEOUT"}
    return None if variables & os.environ.keys() else EXPORT_SECONDS


def _common(route: Route, outcome: Reply | Failure) -> Attributes:
    """Collect the attributes that spans and metrics share."""
    attributes: Attributes = {
        "gen_ai.operation.name": OPERATION,
        "gen_ai.provider.name": KNOWN.get(route.provider, {}).get("convention", route.provider),
        "gen_ai.request.model": route.model.removeprefix(f"{route.provider}/"),
    }
    with suppress(ValueError):  # an invalid API base
        base = urlsplit(route.arguments.get("api_base", ""))
        if base.hostname:
            attributes["server.address"] = base.hostname
            attributes["server.port"] = base.port or (80 if base.scheme == "http" else 443)
    if isinstance(outcome, Failure):
        attributes["error.type"] = outcome.kind
    elif outcome.model_reported:
        attributes["gen_ai.response.model"] = outcome.model_reported
    return attributes


def _of_request(request: Request) -> Attributes:
    set_to = {name: request.parameters.get(name) for name in _PARAMETERS}
    numbers = {_PARAMETERS[name]: value for name, value in set_to.items() if isinstance(value, int | float)}
    return {"evalake.prompt_hash": request.prompt_hash, "evalake.model": request.model, **numbers}


def _of_outcome(outcome: Reply | Failure) -> Attributes:
    attributes: Attributes = {"evalake.attempts": outcome.attempts}
    if isinstance(outcome, Reply):
        values = {name: getattr(outcome, field) for field, name in _USAGE.items()}
        attributes |= {name: value for name, value in values.items() if value is not None}
        if outcome.finish_reason:
            attributes["gen_ai.response.finish_reasons"] = [outcome.finish_reason]
    return attributes
