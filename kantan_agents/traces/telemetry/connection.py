"""The connection to the collector."""

from __future__ import annotations

from typing import Any

import requests
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from requests.exceptions import ChunkedEncodingError
from urllib3.exceptions import ProtocolError

from kantan_agents.support.secrets import mask

# OTLP: responses after which the same request may be sent again.
_TRY_AGAIN = frozenset({429, 502, 503, 504})
_NO_ANSWER = 0
_PROTOBUF = "application/x-protobuf"
_MOST_CHARACTERS = 200


class Connection(requests.Session):
    """Sends requests, and remembers how the last one ended.

    ``may_have_taken``: the collector received it without an answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self._status: int | None = None
        self.may_have_taken = False
        self._answer = b""
        self._has_bad_tls = False

    def request(self, *args: Any, **options: Any) -> requests.Response:
        """Send a request."""
        # OpenTelemetry may send the last of several requests so late that it times out. That error is not the
        # collector's, so the earlier result counts.
        try:
            response = super().request(*args, **options)
        except (requests.ConnectionError, requests.Timeout, ChunkedEncodingError) as error:
            self._status, self.may_have_taken = _NO_ANSWER, _is_sent(error)
            self._has_bad_tls = isinstance(error, requests.exceptions.SSLError)
            raise
        self._status, self.may_have_taken = response.status_code, False
        is_said = response.ok and response.headers.get("content-type", "").startswith(_PROTOBUF)
        self._answer = response.content if is_said else b""
        return response

    def forget(self) -> None:
        """Forget how the last request ended."""
        self._status, self._answer = None, b""
        self.may_have_taken = False

    def connect_anew(self) -> None:
        """Drop the connections, which a forked child shares with its parent."""
        for prefix in ("http://", "https://"):
            self.mount(prefix, requests.adapters.HTTPAdapter())

    @property
    def refused(self) -> tuple[int, str]:
        """How many spans of the last request the collector rejected, and why."""
        try:
            partial = ExportTraceServiceResponse.FromString(self._answer).partial_success
        except DecodeError:
            return 0, ""
        return partial.rejected_spans, mask(" ".join(partial.error_message.split()))[:_MOST_CHARACTERS]

    @property
    def is_away(self) -> bool:
        """Whether the collector may accept the request later."""
        return self._status == _NO_ANSWER or self._status in _TRY_AGAIN

    @property
    def problem(self) -> str:
        """Why the last request failed."""
        if self._status is None:
            return "OpenTelemetry could not send them"
        if self._status:
            return f"the collector answers {self._status}"
        return f"the collector {'has no TLS that is accepted' if self._has_bad_tls else 'does not answer'}"


def _is_sent(error: Exception) -> bool:
    reason = error.args[0] if error.args else None
    return isinstance(error, (requests.ReadTimeout, ChunkedEncodingError)) or isinstance(
        reason, ProtocolError
    )
