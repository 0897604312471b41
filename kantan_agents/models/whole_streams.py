"""Turns an answer without its end, or not from a model, into a connection error.

The OpenAI client accepts both: half an answer counts as whole, a proxy's HTML page as empty.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import attrs
from openai import APIConnectionError

from kantan_agents.support.secrets import mask, shown_url


@attrs.frozen
class _Api:
    """Marks of a whole answer: ``begins`` in its first event, ``ends`` in a whole stream."""

    begins: re.Pattern[bytes]
    ends: re.Pattern[bytes]
    has_answer: Callable[[dict[str, Any]], bool]


def _has_message(data: dict[str, Any]) -> bool:
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, dict) and isinstance(first.get("message"), dict)


_EVENT: Final = b"data:"
_APIS: Final = {
    "/chat/completions": _Api(
        re.compile(rb'"(?:delta|message)"\s*:\s*\{'),
        re.compile(rb'"finish_reason"\s*:\s*"[^"]|(?:^|[\r\n])data: ?\[DONE\]'),
        _has_message,
    ),
    "/responses": _Api(
        re.compile(_EVENT),
        re.compile(rb'"type"\s*:\s*"(?:response\.(?:completed|failed|incomplete)|error)"'),
        lambda data: isinstance(data.get("output"), list),
    ),
}
"""By the end of a path."""
_STREAMED = re.compile(rb'"stream"\s*:\s*true')
_ERROR: Final = re.compile(rb'"error"\s*:\s*[{"]')
_HALF: Final = re.compile(r'"(?:choices|output)"\s*:')
_LONGEST_MARK = 64
_JSON = "application/json"
_READ: Final = 2_000
_SHOWN: Final = 200
_ADVICE: Final = "Check the base URL, which usually ends with /v1, and which server listens there"


def check_streams(client: Any) -> None:
    """Make an ``AsyncClient`` reject incomplete answers."""
    hooks = getattr(client, "event_hooks", None)
    if isinstance(hooks, dict) and _check not in hooks.setdefault("response", []):
        hooks["response"].append(_check)


async def _check(response: Any) -> None:
    request = response.request
    api = next((api for path, api in _APIS.items() if request.url.path.endswith(path)), None)
    if api is None or not response.is_success:
        return
    if _STREAMED.search(request.content):
        read = response.aiter_bytes
        response.aiter_bytes = lambda *args: _WholeStream(response, read(*args), api)
    elif response.headers.get("content-type", _JSON).partition(";")[0].endswith("json"):
        read_json = response.json
        response.json = lambda **options: _object_in(response, api, read_json, **options)
    else:  # the client would return the text
        await response.aread()
        _object_in(response, api, response.json)


def _object_in(response: Any, api: _Api, read: Callable[..., Any], **options: Any) -> Any:
    try:
        data = read(**options)
    except ValueError:
        data = None
    problem, received = "the answer is not a whole JSON object", response.text
    if isinstance(data, dict):
        if api.has_answer(data):
            return data
        problem = "the answer is JSON without an answer of a model"
    elif _HALF.search(received):
        received = None
    raise _error(response, problem, received)


def _error(response: Any, problem: str, received: str | None) -> APIConnectionError:
    """Return an error that ``Retry`` and ``Fallback`` treat as a lost connection.

    ``received`` is None for half a model's answer, which must not be logged.
    """
    kind = response.headers.get("content-type")
    url = shown_url(response.request.url)
    message = f"Connection error: {problem} (content type {kind!r}), from {url}"
    if received is not None:
        text = mask(" ".join(received[:_READ].split()))
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        message += f". It is {shown!r}. {_ADVICE}"
    return APIConnectionError(message=message, request=response.request)


class _WholeStream:
    """The bytes of a streamed answer; raises unless it is whole."""

    # A generator would stay open: the client stops at the end mark.

    def __init__(self, response: Any, parts: AsyncIterator[bytes], api: _Api) -> None:
        self._response = response
        self._parts = parts
        self._api = api
        self._tail = b""
        self._head = b""
        self._has_events = False
        self._has_begun = False
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
        seen = self._tail + part
        if not self._has_begun:
            self._head = (self._head + part)[:_READ]
            self._has_events = self._has_events or _EVENT in seen
            self._has_begun = self._has_events and self._api.begins.search(seen) is not None
        if not self._is_whole:
            self._is_whole = self._has_events and self._api.ends.search(seen) is not None
            # The client stops at an end mark, and raises a server's error.
            if self._is_whole and not self._has_begun and _ERROR.search(seen) is None:
                raise self._error()
        self._tail = seen[-_LONGEST_MARK:]
        return part

    def _error(self) -> APIConnectionError:
        if self._has_begun:
            problem = "broke off: it has no finish reason and no end mark"
            return _error(self._response, f"the stream of the answer {problem}", None)
        received = self._head.decode(errors="replace")
        return _error(self._response, "the stream of the answer has no part of an answer", received)
