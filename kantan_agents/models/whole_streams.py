"""Makes a streamed answer that breaks off an error of the connection.

The OpenAI client takes the end of the body for the end of the answer, and skips lines that are no events. So
half an answer would be a whole one, and a proxy's HTML page with status 200 an empty one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final

from openai import APIConnectionError

_ENDS: Final = {
    "/chat/completions": re.compile(rb'"finish_reason"\s*:\s*"[^"]|(?:^|[\r\n])data: ?\[DONE\]'),
    "/responses": re.compile(rb'"type"\s*:\s*"(?:response\.(?:completed|failed|incomplete)|error)"'),
}
"""By the end of a path: what a streamed answer contains when it is whole."""
_EVENT = b"data:"
_STREAMED = re.compile(rb'"stream"\s*:\s*true')
_LONGEST_MARK = 64


def check_streams(client: Any) -> None:
    """Make an HTTP client of OpenAI's API raise an error for a streamed answer that is not whole.

    Args:
        client: An ``AsyncClient`` of httpx or httpx2. A client without event hooks is left unchanged.
    """
    hooks = getattr(client, "event_hooks", None)
    if isinstance(hooks, dict) and _check not in hooks.setdefault("response", []):
        hooks["response"].append(_check)


async def _check(response: Any) -> None:
    request = response.request
    end = next((end for path, end in _ENDS.items() if request.url.path.endswith(path)), None)
    if end is not None and response.is_success and _STREAMED.search(request.content):
        read = response.aiter_bytes
        response.aiter_bytes = lambda *args: _WholeStream(response, read(*args), end)


class _WholeStream:
    """The bytes of a streamed answer, with an error at their end unless the answer is whole."""

    # Not a generator: the client leaves a stream after its end mark, and a generator would stay open.

    def __init__(self, response: Any, parts: AsyncIterator[bytes], end: re.Pattern[bytes]) -> None:
        self._response = response
        self._parts = parts
        self._end = end
        self._tail = b""
        self._has_events = False
        self._is_whole = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            part = await anext(self._parts)
        except StopAsyncIteration:
            if self._is_whole:
                raise
            raise self._error() from None
        if not self._is_whole:
            seen = self._tail + part
            self._has_events = self._has_events or _EVENT in seen
            self._is_whole = self._has_events and self._end.search(seen) is not None
            self._tail = seen[-_LONGEST_MARK:]
        return part

    def _error(self) -> APIConnectionError:
        problem = "broke off: it has no finish reason and no end mark"
        if not self._has_events:
            problem = f"has no events (content type {self._response.headers.get('content-type')!r})"
        return APIConnectionError(
            message=f"Connection error: the stream of the answer {problem}", request=self._response.request
        )
