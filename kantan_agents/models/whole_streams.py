"""Makes an answer that breaks off, streamed or not, an error of the connection.

The OpenAI client takes the end of the body for the end of the answer, and skips lines that are no events. So
half an answer would be a whole one, and a proxy's HTML page with status 200 an empty one. An answer that
is not streamed would be any text or JSON.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
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
_JSON = "application/json"


def check_streams(client: Any) -> None:
    """Make an HTTP client of OpenAI's API raise an error for an answer that is not whole.

    Args:
        client: An ``AsyncClient`` of httpx or httpx2. A client without event hooks is left unchanged.
    """
    hooks = getattr(client, "event_hooks", None)
    if isinstance(hooks, dict) and _check not in hooks.setdefault("response", []):
        hooks["response"].append(_check)


async def _check(response: Any) -> None:
    request = response.request
    end = next((end for path, end in _ENDS.items() if request.url.path.endswith(path)), None)
    if end is None or not response.is_success:
        return
    if _STREAMED.search(request.content):
        read = response.aiter_bytes
        response.aiter_bytes = lambda *args: _WholeStream(response, read(*args), end)
    elif response.headers.get("content-type", _JSON).partition(";")[0].endswith("json"):
        read_json = response.json
        response.json = lambda **options: _object_in(response, read_json, **options)
    else:  # the client would return the text
        await response.aread()
        _object_in(response, response.json)


def _object_in(response: Any, read: Callable[..., Any], **options: Any) -> Any:
    """Return the JSON object of an answer that is not streamed."""
    try:
        data = read(**options)
    except ValueError:
        data = None
    if isinstance(data, dict):
        return data
    raise _error(response, "the answer is not a whole JSON object")


def _error(response: Any, problem: str) -> APIConnectionError:
    kind = response.headers.get("content-type")
    return APIConnectionError(
        message=f"Connection error: {problem} (content type {kind!r})", request=response.request
    )


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
        problem = (
            "broke off: it has no finish reason and no end mark" if self._has_events else "has no events"
        )
        return _error(self._response, f"the stream of the answer {problem}")
