"""The connection to the collector, which knows why the collector has not taken what was sent."""

from __future__ import annotations

from typing import Any

import requests
from requests.exceptions import ChunkedEncodingError

# OTLP: the answers after which the same request may be sent again. All others are refusals.
_TRY_AGAIN = frozenset({429, 502, 503, 504})
_NO_ANSWER = 0


class Connection(requests.Session):
    """Sends requests, and remembers how the last one has ended."""

    def __init__(self) -> None:
        super().__init__()
        self._status: int | None = None

    def request(self, *args: Any, **options: Any) -> requests.Response:
        """Send a request."""
        self._status = None
        try:
            response = super().request(*args, **options)
        except (requests.ConnectionError, requests.Timeout, ChunkedEncodingError):
            self._status = _NO_ANSWER
            raise
        self._status = response.status_code
        return response

    def forget(self) -> None:
        """Forget how the last request has ended."""
        self._status = None

    def connect_anew(self) -> None:
        """Leave the connections, which in a forked child are also the parent's."""
        for prefix in ("http://", "https://"):
            self.mount(prefix, requests.adapters.HTTPAdapter())

    @property
    def is_away(self) -> bool:
        """Whether the collector is away: it may take later what it has not taken now."""
        return self._status == _NO_ANSWER or self._status in _TRY_AGAIN

    @property
    def problem(self) -> str:
        """Why the last request was of no use."""
        if self._status is None:
            return "OpenTelemetry could not send them"
        return f"the collector answers {self._status}" if self._status else "the collector does not answer"
