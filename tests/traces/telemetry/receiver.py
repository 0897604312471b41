"""A real receiver of OTLP over HTTP: what an exporter sends, parsed from the protobuf."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {1: "internal", 2: "server", 3: "client"}
STATUS = {0: "unset", 1: "ok", 2: "error"}


@attrs.frozen
class Event:
    name: str
    attributes: dict[str, Any]


@attrs.frozen
class Received:
    """A span as the collector has got it."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str | None
    start: int
    end: int
    status: str
    problem: str
    attributes: dict[str, Any]
    events: list[Event]
    scope: str
    schema_url: str
    resource: dict[str, Any]

    def json(self, name: str) -> Any:
        return json.loads(self.attributes[name])


@attrs.frozen
class Point:
    """A data point of a metric; its exemplars are pairs of a trace id and a span id."""

    attributes: dict[str, Any]
    count: int
    sum: float
    unit: str
    schema_url: str
    exemplars: list[tuple[str, str]]


class Receiver:
    """Takes what is sent to ``url``; answers with ``status`` and ``answer``."""

    def __init__(self) -> None:
        self.status = 200
        self.answer = b""
        self.requests: list[str] = []
        self._spans: list[Received] = []
        self._metrics: dict[str, list[Point]] = {}
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"receiver": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def spans(self) -> list[Received]:
        """All spans, the first to start first."""
        with self._lock:
            return sorted(self._spans, key=lambda span: span.start)

    def one(self, name: str) -> Received:
        (found,) = self.named(name)
        return found

    def named(self, name: str) -> list[Received]:
        return [span for span in self.spans if span.name == name]

    def tree(self) -> Any:
        """The names of the spans, each with those of its children."""

        def below(parent: str | None) -> list[Any]:
            return [
                [span.name, *below(span.span_id)] if below(span.span_id) else span.name
                for span in self.spans
                if span.parent_id == parent
            ]

        return below(None)

    def points(self, metric: str) -> list[Point]:
        with self._lock:
            return list(self._metrics.get(metric, ()))

    @property
    def metrics(self) -> set[str]:
        with self._lock:
            return set(self._metrics)

    def take(self, path: str, body: bytes) -> None:
        with self._lock:
            self.requests.append(path)
            if self.status != 200:
                return
            if path == "/v1/traces":
                self._spans += _spans_of(ExportTraceServiceRequest.FromString(body))
            elif path == "/v1/metrics":
                self._metrics |= _points_of(ExportMetricsServiceRequest.FromString(body))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.stop()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    receiver: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.receiver.take(self.path, body)
        self.send_response(self.receiver.status)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(self.receiver.answer)))
        self.end_headers()
        self.wfile.write(self.receiver.answer)

    def log_message(self, *_: Any) -> None: ...


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    return getattr(value, kind) if kind else None


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _spans_of(request: ExportTraceServiceRequest) -> Iterator[Received]:
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Received(
                    name=span.name,
                    kind=KINDS[span.kind],
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex() or None,
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    status=STATUS[span.status.code],
                    problem=span.status.message,
                    attributes=_attributes(span.attributes),
                    events=[Event(event.name, _attributes(event.attributes)) for event in span.events],
                    scope=scope.scope.name,
                    schema_url=scope.schema_url,
                    resource=_attributes(resource.resource.attributes),
                )


def _points_of(request: ExportMetricsServiceRequest) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                data = getattr(metric, metric.WhichOneof("data"))
                found[metric.name] = [
                    Point(
                        _attributes(point.attributes),
                        getattr(point, "count", 1),
                        point.sum if metric.HasField("histogram") else point.as_int,
                        metric.unit,
                        scope.schema_url,
                        [(one.trace_id.hex(), one.span_id.hex()) for one in point.exemplars],
                    )
                    for point in data.data_points
                ]
    return found
