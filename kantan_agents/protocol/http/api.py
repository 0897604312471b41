"""An HTTP API of a model: requests, answers and everything that can go wrong on the way."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from typing import Any, Final, TypeVar

import anyio.to_thread
import httpx

from kantan_agents.errors import InvalidOptionError, ProviderRequestError
from kantan_agents.protocol.http.refusals import reason_of, retry_after, short
from kantan_agents.protocol.http.sse import events_of
from kantan_agents.support.connections import PerLoop, shield_closing

T = TypeVar("T")
_CONNECT_SECONDS: Final = 20.0
LARGE: Final = 100_000
"""So many bytes are no work for the event loop."""
_SAID: Final = 200
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class UnreadableAnswerError(Exception):
    """What an API has sent is not what it sends; becomes E51 or a text, as the provider's user wants it.

    Args:
        reason: What is wrong with it.
        said: All that was sent, which is cut once the key is taken out: half a key would be found no more.
    """

    def __init__(self, reason: str, said: str = "") -> None:
        super().__init__(reason)
        self.said = said


class Api:
    """An HTTP API.

    Connections belong to an event loop: there is one client for each, gone when the loop is.

    Args:
        provider: Name of the provider, for errors.
        base_url: Where it is.
        key: The key; it is taken out of whatever an error says.
        headers: Headers of every request, the key among them.
        timeout: Seconds to wait for the next bytes of an answer; None for ever.
    """

    def __init__(
        self, provider: str, base_url: str, key: str, headers: Mapping[str, str], timeout: float | None
    ) -> None:
        self.provider = provider
        self.base_url = checked_url(base_url)
        self._key = key
        self._headers = dict(headers)
        self._timeout = httpx.Timeout(timeout, connect=_CONNECT_SECONDS)
        url = httpx.URL(self.base_url)
        self._is_local = url.host in _LOOPBACK
        self._tls = _tls() if url.scheme == "https" else _no_tls()
        self._clients = PerLoop(self._client)

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            headers=self._headers,
            timeout=self._timeout,
            verify=self._tls,
            # A proxy of the environment cannot reach this machine's loopback.
            trust_env=not self._is_local,
            event_hooks={"response": [shield_closing]},
        )

    async def ask(self, path: str, content: bytes, headers: Mapping[str, str]) -> bytes:
        """Return the body of the answer to a request.

        Raises:
            ProviderRequestError: E53, the API refused it, or could not be reached.
        """
        async with self._asked(path, content, headers) as response:
            return await response.aread()

    async def stream(
        self, path: str, content: bytes, headers: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the data of the events a request is answered with.

        Raises:
            ProviderRequestError: E53, as ``ask``; also in the midst of the answer.
            UnreadableAnswerError: The answer is no stream of events.
        """
        async with self._asked(path, content, headers) as response:
            kind = response.headers.get("content-type", "")
            if not kind.startswith("text/event-stream"):
                said = (await response.aread()).decode(errors="replace")
                raise UnreadableAnswerError(f"it is of the type {kind or 'unknown'}, not events", said)
            async for event in events_of(response.aiter_bytes()):
                yield event

    @asynccontextmanager
    async def _asked(
        self, path: str, content: bytes, headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        url = f"{self.base_url}{path}"
        sent = {**headers, "content-type": "application/json"}
        try:
            async with self._clients.get().stream("POST", url, content=content, headers=sent) as response:
                if not response.is_success:
                    body = await response.aread()
                    refused = partial(self.refused, response.status_code, body, response.headers)
                    raise await off_loop(refused, len(body))
                yield response
        except httpx.HTTPError as error:
            with suppress(RuntimeError):  # raised where there is no request
                error.request.headers.clear()  # the key is among them
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise self.failed(f"connection error: {reason}") from error

    def refused(self, status: int, body: bytes, headers: Mapping[str, str]) -> ProviderRequestError:
        """Return the error of a request that was refused."""
        reason, error = reason_of(body)
        return self.failed(f"HTTP {status}: {reason}", status, retry_after(headers, error))

    def failed(
        self, reason: str, status: int | None = None, wait: float | None = None
    ) -> ProviderRequestError:
        """Return the error of a request; without the key, should the API have repeated it."""
        return ProviderRequestError(
            provider=self.provider, status=status, reason=self.without_key(reason), retry_after=wait
        )

    def without_key(self, text: str, said: str = "") -> str:
        """Return a text in which the key does not stand, and some of what the API has said behind it."""
        behind = f": {short(self._hidden(said), _SAID)}" if said else ""
        return short(f"{self._hidden(text)}{behind}")

    def _hidden(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text

    async def aclose(self) -> None:
        """Close the connections of the running event loop; a later request opens new ones."""
        client = self._clients.pop()
        if client is not None:
            await client.aclose()


async def off_loop(work: Callable[[], T], size: int) -> T:
    """Return what ``work`` returns; in a thread if its data are so large that the loop would stand still."""
    return work() if size < LARGE else await anyio.to_thread.run_sync(work)


def parsed(data: bytes) -> Any:
    """Return the JSON of an answer.

    Raises:
        UnreadableAnswerError: It is none.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = f"it is no JSON ({short(str(error), 100)})"
        raise UnreadableAnswerError(reason, data.decode(errors="replace")) from None


def checked_url(base_url: Any) -> str:
    """Return a base URL without a slash at its end.

    Raises:
        InvalidOptionError: E75, it is none.
    """
    try:
        url = httpx.URL(base_url)
        is_url = url.scheme in ("http", "https") and bool(url.host)
    except (httpx.InvalidURL, TypeError):
        is_url = False
    if not is_url:
        raise InvalidOptionError(option="base_url", reason=f"must be an http(s) URL, not {base_url!r}"[:300])
    return str(base_url).rstrip("/")


@cache
def _tls() -> ssl.SSLContext:
    """Return the HTTP library's TLS settings: they take 60 ms to make, and belong to no loop."""
    return httpx.create_ssl_context()


@cache
def _no_tls() -> ssl.SSLContext:
    """Return settings that trust nobody, for a server without TLS: reading certificates would be in vain."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
