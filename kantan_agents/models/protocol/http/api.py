"""``Api``: a provider's HTTP client."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

import anyio.to_thread
import httpx

from kantan_agents.errors import ProviderRequestError
from kantan_agents.models.answer_headers import report_answer_headers
from kantan_agents.models.connections import PerLoop
from kantan_agents.models.http_pools import reclaim_connections
from kantan_agents.models.protocol.http.error_bodies import parse_error_body, retry_after, shorten
from kantan_agents.models.protocol.http.options import checked_url
from kantan_agents.models.tls import no_tls, tls_settings

T = TypeVar("T")
_CONNECT_SECONDS: Final = 20.0
LARGE: Final = 100_000
"""Data of this many bytes are parsed in a thread."""
_SHOWN: Final = 200
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class UnreadableAnswerError(Exception):
    """A response that cannot be parsed; ``on_unreadable`` decides about E51.

    ``body`` is whole, since half an API key could not be masked.
    """

    def __init__(self, reason: str, body: str = "") -> None:
        super().__init__(reason)
        self.body = body


class Api:
    """Sends requests to one HTTP API, with one HTTP client per event loop.

    Connections close when nothing uses this object. Errors mask ``key``. ``timeout``: seconds between bytes.
    """

    def __init__(
        self, provider: str, base_url: str, key: str, headers: Mapping[str, str], timeout: float | None
    ) -> None:
        self.provider = provider
        self.base_url = checked_url(base_url)
        self._key = key
        self.identity = {"url": self.base_url, "headers": dict(headers)}
        url = httpx.URL(self.base_url)
        create = partial(
            httpx.AsyncClient,
            headers=dict(headers),
            timeout=httpx.Timeout(timeout, connect=_CONNECT_SECONDS),
            verify=tls_settings() if url.scheme == "https" else no_tls(),
            # A proxy cannot reach this machine's loopback interface.
            trust_env=url.host not in _LOOPBACK,
        )
        self._clients = PerLoop(partial(_new_client, create, self.base_url), httpx.AsyncClient.aclose)

    async def post(self, path: str, content: bytes, headers: Mapping[str, str]) -> bytes:
        """Send a request and return the response body; E53 if it fails."""
        async with self._open(path, content, headers) as response:
            return await response.aread()

    async def delete(self, path: str) -> None:
        """Delete an earlier request's resource; E53."""
        async with self._open(path, b"", {}, method="DELETE"):
            pass

    async def stream(
        self, path: str, content: bytes, headers: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the data of each event; E53, or UnreadableAnswerError for no event stream."""
        async with self._open(path, content, headers) as response:
            kind = response.headers.get("content-type", "")
            if not kind.startswith("text/event-stream"):
                body = (await response.aread()).decode(errors="replace")
                raise UnreadableAnswerError(f"it is of the type {kind or 'unknown'}, not events", body)
            async for event in events_of(response.aiter_bytes()):
                yield event

    @asynccontextmanager
    async def _open(
        self, path: str, content: bytes, headers: Mapping[str, str], method: str = "POST"
    ) -> AsyncIterator[httpx.Response]:
        url = f"{self.base_url}{path}"
        sent = {**headers, "content-type": "application/json"}
        try:
            async with self._clients.get().stream(method, url, content=content, headers=sent) as response:
                if not response.is_success:
                    body = await response.aread()
                    refused = partial(self.refusal_error, response.status_code, body, response.headers)
                    raise await off_loop(refused, len(body))
                yield response
        except httpx.HTTPError as error:
            with suppress(RuntimeError):  # the error has no request
                error.request.headers.clear()  # they include the key
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise self.request_error(f"connection error: {reason}") from error

    def refusal_error(self, status: int, body: bytes, headers: Mapping[str, str]) -> ProviderRequestError:
        """Return the error for an error status."""
        reason, error = parse_error_body(body)
        return self.request_error(f"HTTP {status}: {reason}", status, retry_after(headers, error))

    def request_error(
        self, reason: str, status: int | None = None, wait: float | None = None
    ) -> ProviderRequestError:
        """Return an error with the key masked."""
        return ProviderRequestError(
            provider=self.provider, status=status, reason=self.redact(reason), retry_after=wait
        )

    def redact(self, text: str, body: str = "") -> str:
        """Mask the key in ``text`` and the start of ``body``."""
        shown = f": {shorten(self._mask_key(body), _SHOWN)}" if body else ""
        return shorten(f"{self._mask_key(text)}{shown}")

    def _mask_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text

    async def aclose(self) -> None:
        """Close the running event loop's connections."""
        client = self._clients.pop()
        if client is not None:
            await client.aclose()


def _new_client(create: Callable[[], httpx.AsyncClient], base_url: str) -> httpx.AsyncClient:
    client = create()
    reclaim_connections(client, base_url)
    report_answer_headers(client)
    return client


async def off_loop(work: Callable[[], T], size: int) -> T:
    """Call ``work``, in a thread for large data."""
    return work() if size < LARGE else await anyio.to_thread.run_sync(work)


def parse_json(data: bytes) -> Any:
    """Return parsed JSON; raise ``UnreadableAnswerError``."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = f"it is not valid JSON ({shorten(str(error), 100)})"
        raise UnreadableAnswerError(reason, data.decode(errors="replace")) from None


async def events_of(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each complete event.

    Only a line feed ends a line: JSON may contain Unicode's line separators.
    """
    data: list[bytes] = []
    async for line in _lines(chunks):
        if not line:
            if data:
                yield b"\n".join(data)
                data = []
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))


async def _lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    partial: list[bytes] = []
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        partial.append(first)
        for line in others:
            yield b"".join(partial).removesuffix(b"\r")
            partial = [line]
