"""The service of docs/start/first-service.md answers as shown, and ends the run of a lost client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agents import set_trace_processors

from kantan_agents import TraceStore, subscribe
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from kantan_agents.testing.wire import ReplyLike
from kantan_agents.tracing.registry import recorders

from .pages import ROOT, Page

PAGE = Page(ROOT / "docs" / "start" / "first-service.md")
REPLIES: list[ReplyLike] = [ScriptedToolCall("list_orders", {}), "You ordered a lamp and a rug."]
SCOPE = {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.3"},
    "http_version": "1.1",
    "method": "POST",
    "path": "/ask",
    "raw_path": b"/ask",
    "query_string": b"",
    "headers": [(b"x-customer", b"aiko")],
}

pytestmark = pytest.mark.anyio


@pytest.fixture
async def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    monkeypatch.chdir(tmp_path)
    with OfflineServer(REPLIES) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        module: dict[str, Any] = {"__name__": "service"}
        exec(compile(PAGE.script, str(PAGE.path), "exec"), module)
        yield module["app"]
    set_trace_processors([])
    for recorder in recorders():
        recorder.shutdown()


async def ask(app: Any, *, leaves_after: int | None = None) -> str:
    """Return the body that the service sends; the client disconnects after ``leaves_after`` chunks."""
    received: list[str] = []
    has_left = asyncio.Event()
    requests = [{"type": "http.request", "body": json.dumps({"text": "What did I order?"}).encode()}]

    async def receive() -> Any:
        if requests:
            return requests.pop()
        await has_left.wait()
        return {"type": "http.disconnect"}

    async def send(sent: Any) -> None:
        if sent["type"] == "http.response.body":
            received.append(sent["body"].decode())
        if leaves_after is not None and len(received) >= leaves_after:
            has_left.set()
            await asyncio.sleep(3600)  # the connection accepts no more data

    await app(SCOPE, receive, send)
    return "".join(received)


async def test_the_service_sends_what_the_page_shows(app: Any) -> None:
    (shown,) = PAGE.blocks("text")
    assert await ask(app) == shown.code + "\n"
    trace = TraceStore("traces.sqlite3").trace("LAST").summary
    assert (trace.input, trace.output) == ("What did I order?", "You ordered a lamp and a rug.")


async def test_a_client_that_disconnects_ends_the_run(app: Any) -> None:
    kinds: list[str] = []
    with subscribe(lambda event: kinds.append(event.type)):
        assert "event: done" not in await ask(app, leaves_after=1)
    assert kinds[-1] == "run_cancelled"
