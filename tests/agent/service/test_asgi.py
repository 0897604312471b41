"""The application of docs/guides/deploying.md on servers that report lost clients unlike uvicorn does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import ClientDisconnect

from kantan_agents import Event, subscribe
from kantan_agents.core.events import RunCancelled
from tests.agent.service.served import load, pass_on
from tests.agent.service.service_process import PAGE, QUESTION, SECONDS, until
from tests.agent.service.watched_server import WatchedServer, order_then_answer


@pytest.fixture
def model_server() -> Iterator[WatchedServer]:
    """A model server that pauses each answer after its first text delta, until the client disconnects."""
    with WatchedServer(order_then_answer, lambda request: 5 if is_second(request) else None) as server:
        yield server


def is_second(request: Any) -> bool:
    return len(request.body["input"]) > 1


@pytest.fixture(params=[False, True], ids=["plain", "BaseHTTPMiddleware"])
def service(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model_server: WatchedServer,
) -> Any:
    """The page's module."""
    for name, value in model_server.environment().items():
        monkeypatch.setenv(name, value)
    script = tmp_path / "service.py"
    script.write_text(PAGE.script, encoding="utf-8")
    service = load(str(script))
    service.HEARTBEAT = 0.01
    if request.param:
        service.app.middleware("http")(pass_on)  # Starlette's BaseHTTPMiddleware
    return service


class Client:
    """The server's end of a connection whose client disconnects in the middle of the stream.

    Args:
        spec_version: Version of ASGI. Since 2.4, only an error of ``send`` reports a lost client.
        leaves: ``"closes"`` to disconnect at once, or ``"stops reading"`` to do so after a while, in which
            ``send`` waits.
    """

    def __init__(self, spec_version: str, leaves: str) -> None:
        self._spec_version = spec_version
        self._leaves = leaves
        self._asked = False
        self._has_left = anyio.Event()
        self._is_notified = anyio.Event()
        self.received: list[bytes] = []

    async def ask(self, app: Any) -> None:
        """Send the request to the application."""
        headers = [(b"content-type", b"application/json"), (b"x-customer", b"aiko")]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": self._spec_version},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/stream",
            "raw_path": b"/stream",
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": None,
            "server": ("localhost", 80),
        }
        await app(scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": json.dumps(QUESTION).encode(), "more_body": False}
        await self._has_left.wait()
        self._is_notified.set()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if self._has_left.is_set():
            if self._spec_version >= "2.4":
                raise OSError("connection lost")
            return
        self.received.append(message.get("body", b""))
        if b"text_delta" in self.received[-1]:
            self._has_left.set()
            if self._leaves == "stops reading":
                await self._is_notified.wait()
                await anyio.wait_all_tasks_blocked()  # so that a cancellation arrives during ``send``


@pytest.mark.parametrize(
    ("spec_version", "leaves"),
    [("2.3", "closes"), ("2.3", "stops reading"), ("2.4", "closes")],
)
async def test_the_run_ends_before_the_request_does(
    service: Any, model_server: WatchedServer, spec_version: str, leaves: str
) -> None:
    observed: list[Event] = []
    before = asyncio.all_tasks()
    client = Client(spec_version, leaves)
    with subscribe(observed.append), anyio.fail_after(SECONDS), suppress(ClientDisconnect, OSError):
        await client.ask(service.app)

    assert isinstance(observed[-1], RunCancelled), "at once, not in a garbage collection later"
    assert client.received[-1].startswith(b"id: 16\nevent: text_delta")
    await until(is_quiet(before, model_server))


def is_quiet(before: set[Any], server: WatchedServer) -> Callable[[], Any]:
    async def nothing_is_left() -> bool:
        return asyncio.all_tasks() == before and server.under_way == 0

    return nothing_is_left
