"""Serves an application on 127.0.0.1 during a test."""

from __future__ import annotations

import socket
import threading
from typing import Any

import uvicorn
from typing_extensions import Self

from kantan_agents.testing.offline import PromptServer


class Loopback:
    """Serves an application in a separate thread."""

    def __init__(self, app: Any) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        config = uvicorn.Config(
            app, log_level="critical", access_log=False, lifespan="off", loop="asyncio", http="h11", ws="none"
        )
        self._server = PromptServer(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
        self._thread.join()
