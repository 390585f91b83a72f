"""A local OpenTelemetry collector for tests: takes OTLP over HTTP, and keeps what it was told."""

import gzip
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue


@dataclass(frozen=True)
class Span:
    """One span as it was sent. Times are nanoseconds since 1970."""

    name: str
    kind: int
    trace: bytes
    id: bytes
    parent: bytes
    started: int
    ended: int
    status: int
    message: str
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Histogram:
    """One data point of a histogram."""

    name: str
    unit: str
    boundaries: tuple[float, ...]
    count: int
    sum: float
    attributes: dict[str, Any]


@dataclass
class Collector:
    """The server. As a context manager it runs on a thread of its own, on a free port."""

    spans: list[Span] = field(default_factory=list)
    histograms: list[Histogram] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that tells it of its spans, however long this one stands still."""
        address = f"http://127.0.0.1:{self._server.server_port}"
        sent = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_TIMEOUT": "600"}
        return {"EVALAKE_TELEMETRY": "1", **sent}

    def take(self, path: str, body: bytes) -> None:
        """Keep one export."""
        self.bodies.append(body)
        if path == "/v1/traces":
            for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(_attributes(of_resource.resource.attributes))
                for of_scope in of_resource.scope_spans:
                    self.spans += [_span(span) for span in of_scope.spans]
        elif path == "/v1/metrics":
            # Sums are cumulative: the last export of a process says it all.
            self.histograms = [
                Histogram(
                    metric.name,
                    metric.unit,
                    tuple(point.explicit_bounds),
                    point.count,
                    point.sum,
                    _attributes(point.attributes),
                )
                for of_resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
                for of_scope in of_resource.scope_metrics
                for metric in of_scope.metrics
                for point in metric.histogram.data_points
            ]
        else:
            raise AssertionError(f"nothing is sent to {path}")


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            unpacked = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            collector.take(self.path, unpacked)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    return Handler


def _span(span: Any) -> Span:
    return Span(
        name=span.name,
        kind=span.kind,
        trace=span.trace_id,
        id=span.span_id,
        parent=span.parent_span_id,
        started=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        status=span.status.code,
        message=span.status.message,
        attributes=_attributes(span.attributes),
    )


def _attributes(pairs: "list[KeyValue]") -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = str(value.WhichOneof("value"))
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)
