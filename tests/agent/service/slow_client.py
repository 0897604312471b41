"""An HTTP client with small socket buffers that reads only on demand."""

from __future__ import annotations

import asyncio
import json
import socket
from types import TracebackType

from typing_extensions import Self


class SlowClient:
    """Asks the application a question over a socket with small buffers.

    Args:
        port: Port of the application on 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._port = port
        self._received = b""

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self._socket, ("127.0.0.1", self._port))
        body = json.dumps({"text": "What did I order?"})
        head = (
            "POST /stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Customer: aiko\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        await loop.sock_sendall(self._socket, (head + body).encode())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()

    async def read_some(self, size: int) -> bool:
        """Read at most ``size`` bytes, and return whether there were any."""
        data = await asyncio.get_running_loop().sock_recv(self._socket, size)
        self._received += data
        return bool(data)

    async def read_rest(self) -> None:
        """Read the rest of the response."""
        while await self.read_some(65536):
            continue

    @property
    def text(self) -> str:
        """The body received so far, without the HTTP chunk headers."""
        _, _, rest = self._received.partition(b"\r\n\r\n")
        body = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size, 16)
            body += rest[:length]
            rest = rest[length + 2 :]
        return body.decode()
