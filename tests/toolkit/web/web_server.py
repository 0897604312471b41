"""A real HTTP server on 127.0.0.1 whose answers are bytes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import attrs

Answer: TypeAlias = "bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]"


def page(content: bytes, kind: str = "text/plain", status: str = "200 OK", **headers: str) -> bytes:
    """Return an answer with a content."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", "Connection: close"]
    lines += [f"Content-Type: {kind}"] if kind else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


def redirect(target: str, status: str = "302 Found") -> bytes:
    """Return an answer that leads elsewhere."""
    return page(b"", status=status, Location=target, Set_Cookie="session=secret")


@attrs.define
class WebServer:
    """The server.

    Attributes:
        port: Its port.
        answers: What it answers, by path.
        requests: What it was sent.
    """

    port: int
    answers: dict[str, Answer] = attrs.field(factory=dict)
    requests: list[str] = attrs.field(factory=list)

    def url(self, path: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        """Return a URL of it."""
        return f"{scheme}://{host}:{self.port}{path}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(request)
            answer = self.answers.get(request.split(" ")[1], page(b"", status="404 Not Found"))
            if isinstance(answer, bytes):
                writer.write(answer)
            else:
                await answer(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[WebServer]:
    """Run a server."""
    web = WebServer(0)
    server = await asyncio.start_server(web.answer, "127.0.0.1", 0, ssl=tls)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
