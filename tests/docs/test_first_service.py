"""The service of docs/start/first-service.md keeps what its page promises."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from agents import set_trace_processors
from openai import AsyncOpenAI

from kantan_agents import TraceStore, subscribe
from kantan_agents.testing import OfflineServer, RecordedRequest, Reply, ReplyLike, ScriptedToolCall
from kantan_agents.traces.registry import recorders
from tests.clocks import let_pass

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


Answer = Callable[[RecordedRequest], ReplyLike]


@pytest.fixture
async def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """``serve(replies)`` returns the module of the page, whose models answer with ``replies``."""
    monkeypatch.chdir(tmp_path)
    with ExitStack() as servers:

        def start(replies: list[ReplyLike] | Answer) -> dict[str, Any]:
            server = servers.enter_context(OfflineServer(replies))
            for name, value in server.environment().items():
                monkeypatch.setenv(name, value)
            module: dict[str, Any] = {"__name__": "service", "model_server": server}
            exec(compile(PAGE.script, str(PAGE.path), "exec"), module)
            return module

        yield start
    set_trace_processors([])
    for recorder in recorders():
        recorder.shutdown()


class Client:
    """One request: its status, its headers and the body received so far.

    Args:
        leaves_after: The number of chunks after which the client disconnects.
        stops_after: The number of chunks after which it stops reading.
    """

    def __init__(self, *, leaves_after: int | None = None, stops_after: int | None = None) -> None:
        self._leaves_after = leaves_after
        self._stops_after = stops_after
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = ""
        self.has_stopped = asyncio.Event()
        self._chunks = 0
        self._has_left = asyncio.Event()

    async def ask(self, app: Any) -> str:
        """Send the request to the application and return the body."""
        requests = [{"type": "http.request", "body": json.dumps({"text": "What did I order?"}).encode()}]

        async def receive() -> Any:
            if requests:
                return requests.pop()
            await self._has_left.wait()
            return {"type": "http.disconnect"}

        async def send(sent: Any) -> None:
            if sent["type"] == "http.response.start":
                self.status, self.headers = sent["status"], dict(sent["headers"])
                return
            self.body += sent["body"].decode()
            self._chunks += 1
            if self._leaves_after is not None and self._chunks >= self._leaves_after:
                self._has_left.set()
                await asyncio.Event().wait()  # the connection accepts no more data
            if self._stops_after is not None and self._chunks >= self._stops_after:
                self.has_stopped.set()
                await asyncio.Event().wait()

        await app(SCOPE, receive, send)
        return self.body


async def test_the_service_sends_what_the_page_shows(serve: Any) -> None:
    (shown,) = PAGE.blocks("text")
    assert await Client().ask(serve(REPLIES)["app"]) == shown.code + "\n"
    trace = TraceStore("traces.sqlite3").trace("LAST").summary
    assert (trace.input, trace.output) == ("What did I order?", "You ordered a lamp and a rug.")


async def test_a_client_that_disconnects_ends_the_run_and_frees_its_place(serve: Any) -> None:
    service = serve(REPLIES)
    service["places"] = asyncio.BoundedSemaphore(1)
    kinds: list[str] = []
    with subscribe(lambda event: kinds.append(event.type)):
        assert "event: done" not in await Client(leaves_after=1).ask(service["app"])
    assert kinds[-1] == "run_cancelled"
    assert not service["places"].locked()


async def test_a_request_without_a_place_is_answered_with_503_and_starts_no_run(serve: Any) -> None:
    service = serve(REPLIES * 2)
    assert service["places"]._value == 100
    service["places"] = asyncio.BoundedSemaphore(1)
    first, second = Client(stops_after=1), Client()
    async with anyio.create_task_group() as requests:
        requests.start_soon(first.ask, service["app"])
        await first.has_stopped.wait()
        started: list[str] = []
        with subscribe(lambda event: started.append(event.type)):
            await second.ask(service["app"])
            assert "run_started" not in started
        requests.cancel_scope.cancel()
    assert (second.status, second.headers[b"retry-after"]) == (503, b"5")
    assert not service["places"].locked()


async def test_a_run_that_takes_too_long_is_ended(serve: Any) -> None:
    loop = asyncio.get_running_loop()

    def answer_late(_request: RecordedRequest) -> ReplyLike:
        loop.call_soon_threadsafe(let_pass)
        return Reply("late", delay=30)

    client = Client()
    kinds: list[str] = []
    with subscribe(lambda event: kinds.append(event.type)):
        await client.ask(serve(answer_late)["app"])
    assert client.body == 'event: error\ndata: "internal error"\n\n'
    assert kinds[-1] == "run_failed"
    assert "had not finished after 60 s" in str(TraceStore("traces.sqlite3").trace("LAST").summary.error)


@pytest.mark.parametrize("fault", ["the key is unknown", "the server is down", "the answer breaks off"])
async def test_a_failed_run_is_one_line_of_the_services_log(
    fault: str, serve: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AsyncOpenAI, "_sleep_for_retry", _no_wait)
    service = serve([Reply("unknown key", status=401)] * 9)
    if fault == "the server is down":
        service["model_server"].__exit__(None, None, None)
    elif fault == "the answer breaks off":
        service = serve([Reply(body=b"event: response.created\ndata: {", headers={"x": "y"})] * 9)
    client = Client()
    await client.ask(service["app"])
    assert client.body == 'event: error\ndata: "internal error"\n\n'

    formatter = logging.Formatter()
    lines = {
        name: [formatter.format(record) for record in caplog.records if record.name == name]
        for name in {record.name for record in caplog.records if record.levelno >= logging.WARNING}
    }
    assert set(lines) <= {"service", "kantan_agents.run", "openai.agents"}
    for logger, written in lines.items():
        assert len(written) == 1, logger
        assert "\n" not in written[0]
    assert len(lines["service"][0]) <= len("run failed: ") + 500


async def _no_wait(*_: Any, **__: Any) -> None:
    return
