"""Serves the page of a database on a port of this machine, with a real uvicorn in a thread."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import uvicorn
from starlette.types import ASGIApp

T = TypeVar("T")


def apart(function: Callable[[], T]) -> T:
    """Call a function in a thread of its own: Playwright's event loop is in the one of the test."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result()


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """Yield the address of the application, such as ``http://127.0.0.1:4711``."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 120
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.started
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)
