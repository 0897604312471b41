"""A TCP proxy in front of a Postgres server, which can stop forwarding and still accept what is sent."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs, urlsplit


class StallingProxy:
    """Forwards the connections of a loopback port to the socket of a server.

    Attributes:
        url: The database behind it.
        flows: Cleared while it forwards nothing.
        stalled: Set when it has stalled.
    """

    def __init__(self, url: str) -> None:
        self._target = f"{parse_qs(urlsplit(url).query)['host'][0]}/.s.PGSQL.5432"
        self._server = socket.create_server(("127.0.0.1", 0))
        self._ends = threading.Event()
        self.flows = threading.Event()
        self.flows.set()
        self.stalled = threading.Event()
        parts = urlsplit(url)
        port = self._server.getsockname()[1]
        self.url = (
            f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}?sslmode=disable&gssencmode=disable"
        )
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._target)
                self._threads.append(threading.Thread(target=self._forward, args=(near, far), daemon=True))
                self._threads[-1].start()

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        flows = self.flows
        with near, far, suppress(OSError):
            while not self._ends.is_set():
                for one in select.select([near, far], [], [], 0.05)[0]:
                    data = one.recv(65536)
                    while not flows.wait(0.05):  # it has accepted them, and forwards nothing
                        if self._ends.is_set():
                            return
                    if not data:
                        return
                    (far if one is near else near).sendall(data)

    def stall(self) -> None:
        """Forward nothing, until ``flows`` is set again."""
        self.flows.clear()
        self.stalled.set()

    def lose(self) -> None:
        """Forward nothing any more of the connections that there are. New ones are forwarded."""
        self.stall()
        self.flows = threading.Event()
        self.flows.set()

    def close(self) -> None:
        self._ends.set()
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join()


@contextmanager
def stalling_proxy(url: str) -> Iterator[StallingProxy]:
    """Start a proxy in front of a server, and close it afterwards."""
    proxy = StallingProxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
