"""MCP servers that fail: they are connected again, named in the error, or left out by choice."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from agents.mcp import MCPServerManager, MCPServerStdio, MCPServerStreamableHttp

from kantan_agents import Agent, Event, KantanAgentsError, mcp_prompt, resource_text, with_resources
from kantan_agents.errors import (
    InvalidOptionError,
    MCPServerUnavailableError,
    PromptNotFetchedError,
    ResourceNotReadError,
)
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tools.mcp import backoff
from tests.ports import reserved_port
from tests.programs import Preloaded
from tests.tools.conftest import outputs
from tests.tools.mcp.processes import SCRIPT, Processes, all_ended, kill
from tests.tools.mcp.session_server import SessionServer


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def processes(tmp_path: Path, preloaded: Preloaded) -> Processes:
    return Processes(tmp_path, preloaded)


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits, and a rest that lasts for a whole test."""
    limit(monkeypatch, first_rest=300.0, longest_rest=300.0)


def limit(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    values: dict[str, Any] = {"attempts": 2, "first_wait": 0.001, **changes}
    monkeypatch.setattr(backoff, "BACKOFF", backoff.Backoff(**values))


def model(*called: tuple[str, dict[str, Any]]) -> ScriptedModel:
    turns = [[function_call(name, values, call_id=f"c{i}")] for i, (name, values) in enumerate(called)]
    return ScriptedModel([*turns, [assistant_message("done")]])


def agent(*servers: Any, scripted: ScriptedModel | None = None, **options: Any) -> Agent[Any]:
    return Agent("clerk", "x", model=scripted or model(), mcp_servers=servers, tool_providers=None, **options)


def tool_names(scripted: ScriptedModel, turn: int = 0) -> list[str]:
    return [tool.name for tool in scripted.calls[turn].tools]


READ: tuple[str, dict[str, Any]] = ("read", {"path": "a"})


@pytest.mark.fast("an MCP server in a process")
async def test_a_server_that_was_killed_between_two_runs_is_connected_again(processes: Processes) -> None:
    async with processes.server() as server:
        await kill(processes, server)
        scripted = model(READ)
        await agent(server, scripted=scripted).run_async("Go")
        assert "content of a" in str(outputs(scripted))
        assert len(processes.pids) == 2
        assert [tool.name for tool in await server.list_tools()] == ["read", "pay"]  # the user's object works
    await all_ended(processes)


async def test_a_call_on_a_connection_that_is_known_to_be_lost_is_sent_over_a_new_one(
    processes: Processes,
) -> None:
    async with processes.server(cache_tools_list=True) as server:
        await server.list_tools()
        await kill(processes, server)
        scripted = model(READ)
        await agent(server, scripted=scripted).run_async("Go")
        assert "content of a" in str(outputs(scripted))
    assert processes.calls == ["read a"]


async def test_a_call_that_may_have_been_executed_is_not_sent_twice_and_the_run_goes_on(
    processes: Processes, caplog: pytest.LogCaptureFixture
) -> None:
    scripted = model(("pay", {"amount": 5}), READ)
    async with processes.server(cache_tools_list=True) as server:
        with caplog.at_level("WARNING", "kantan_agents"):
            await agent(server, scripted=scripted).run_async("Go")
    assert processes.calls == ["pay 5", "read a"]
    assert len(processes.pids) == 2
    paid, read = map(str, outputs(scripted))
    assert "may have been executed or not: find out before you call it again" in paid
    assert "try again" not in paid
    assert "content of a" in read
    assert "mcp_connection_lost" in caplog.text


async def test_a_server_that_cannot_be_connected_again_ends_the_run_with_its_name_and_the_cause(
    processes: Processes,
) -> None:
    async with processes.server() as server:
        processes.break_it()
        await kill(processes, server)
        reader = agent(server)
        with pytest.raises(MCPServerUnavailableError, match="MCP server files of agent clerk") as raised:
            await reader.run_async("Go")
        assert raised.value.code == "E28"
        assert raised.value.__cause__ is not None
        assert processes.log.count("broken") == 2
        with pytest.raises(MCPServerUnavailableError, match="the next attempt is in"):
            await reader.run_async("Go")
        assert processes.log.count("broken") == 2  # it rests


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_run_continues_without_a_failing_server_by_choice_and_says_so(
    processes: Processes, caplog: pytest.LogCaptureFixture, streamed: bool
) -> None:
    def look(place: str) -> str:
        """Look."""
        return f"{place} is empty"

    scripted = model(("look", {"place": "here"}))
    events: list[Event] = []
    processes.break_it()
    clerk = agent(processes.server(), scripted=scripted, tools=[look], on_mcp_failure="continue")
    with caplog.at_level("WARNING", "kantan_agents"):
        if streamed:
            async with clerk.stream("Go") as run:
                events += [event async for event in run]
        else:
            clerk.subscribe(events.append)
            await clerk.run_async("Go")
    assert outputs(scripted) == ["here is empty"]
    assert tool_names(scripted) == ["look"]
    left_out = [event for event in events if event.type == "mcp_server_omitted"]
    assert [(event.server, event.code, event.agent) for event in left_out] == [("files", "E28", "clerk")]
    assert caplog.text.count("mcp_server_omitted") == 1


async def test_the_choice_can_differ_for_each_server(processes: Processes) -> None:
    processes.break_it()
    both = [processes.server("files"), processes.server("mail")]
    await agent(*both, on_mcp_failure={"files": "continue", "mail": "continue"}).run_async("Go")
    with pytest.raises(MCPServerUnavailableError, match="MCP server mail"):
        await agent(*both, on_mcp_failure={"files": "continue"}).run_async("Go")


@pytest.mark.parametrize("wrong", ["ignore", None, {"files": "ignore"}, {"flies": "continue"}, ["raise"]])
def test_a_choice_that_does_not_exist_is_an_error(processes: Processes, wrong: Any) -> None:
    with pytest.raises(InvalidOptionError, match="on_mcp_failure"):
        agent(processes.server(), on_mcp_failure=wrong)


async def test_a_command_that_does_not_exist_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    server = MCPServerStdio({"command": "/does/not/exist"}, name="missing")
    with pytest.raises(MCPServerUnavailableError, match="FileNotFoundError"):
        await agent(server).run_async("Go")
    limit(monkeypatch, first_rest=0.0)
    await agent(server, on_mcp_failure="continue").run_async("Go")


def test_a_server_that_nobody_has_connected_is_connected_by_the_run_and_closed_with_the_event_loop(
    processes: Processes,
) -> None:
    scripted = ScriptedModel([[function_call(*READ, call_id="c")], *[[assistant_message("done")]] * 2])
    clerk = agent(processes.server(), scripted=scripted)
    asyncio.run(clerk.run_async("Go"))
    assert processes.calls == ["read a"]
    anyio.run(all_ended, processes)
    asyncio.run(clerk.run_async("Go"))  # another event loop: connected again
    assert len(processes.pids) == 2


async def test_concurrent_runs_share_one_reconnection_and_a_cancelled_one_does_not_stop_it(
    processes: Processes,
) -> None:
    async with processes.server() as server:
        await kill(processes, server)
        clerk = agent(server, scripted=ScriptedModel([[assistant_message("done")]] * 20))
        first = asyncio.create_task(clerk.run_async("Go"))
        others = [asyncio.create_task(clerk.run_async("Go")) for _ in range(10)]
        for _ in range(10):  # all have begun, and a connection takes many more steps of the loop
            await asyncio.sleep(0)
        first.cancel()
        assert len(await asyncio.gather(*others)) == 10
        assert first.cancelled()
    assert len(processes.pids) == 2


async def test_a_server_that_is_silent_once_keeps_its_connection_and_twice_gets_a_new_one(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, first_rest=0.0)
    server = processes.server(client_session_timeout_seconds=5)
    async with server:
        # The timeout of the server object is also that of its start, which may take long.
        known = vars(server.session)
        is_number = isinstance(known["_session_read_timeout_seconds"], (int, float))
        known["_session_read_timeout_seconds"] = 0.2 if is_number else timedelta(seconds=0.2)  # mcp 2, mcp 1
        processes.signal(signal.SIGSTOP)
        with pytest.raises(MCPServerUnavailableError, match=r"(?i)timed out"):
            await agent(server).run_async("Go")
        processes.signal(signal.SIGCONT)
        await agent(server).run_async("Go")
        assert len(processes.pids) == 1
        processes.signal(signal.SIGSTOP)
        with pytest.raises(MCPServerUnavailableError, match=r"(?i)timed out"):
            await agent(server).run_async("Go")
        await agent(server).run_async("Go")
        assert len(processes.pids) == 2
        os.kill(processes.pids[0], signal.SIGCONT)
    await all_ended(processes)


async def test_the_silences_of_runs_at_once_are_one(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, first_rest=0.0)
    async with processes.server(client_session_timeout_seconds=5) as server:
        known = vars(server.session)
        is_number = isinstance(known["_session_read_timeout_seconds"], (int, float))
        known["_session_read_timeout_seconds"] = 0.3 if is_number else timedelta(seconds=0.3)
        processes.signal(signal.SIGSTOP)
        runs = [agent(server).run_async("Go") for _ in range(5)]
        ended = await asyncio.gather(*runs, return_exceptions=True)
        processes.signal(signal.SIGCONT)
        assert [type(one) for one in ended] == [MCPServerUnavailableError] * 5
        assert len(processes.pids) == 1  # it was not ended while it may be at work for others


@pytest.mark.parametrize("name", ["notes://today", "today"])
async def test_resources_and_prompts_are_fetched_over_a_new_connection(
    processes: Processes, name: str
) -> None:
    async def fetched(server: Any) -> str:
        return await resource_text(server, name) if ":" in name else (await mcp_prompt(server, name)).text

    async with processes.server() as server:
        await kill(processes, server)
        assert await fetched(server) == "Buy milk."
        assert len(processes.pids) == 2
        processes.break_it()
        await kill(processes, server)
        with pytest.raises((ResourceNotReadError, PromptNotFetchedError), match="server files: "):
            await fetched(server)


async def test_a_server_that_the_user_connects_again_does_not_rest(processes: Processes) -> None:
    server = processes.server()
    processes.break_it()
    with pytest.raises(MCPServerUnavailableError):
        await agent(server).run_async("Go")
    processes.repair()
    async with server:
        await agent(server).run_async("Go")


async def test_the_users_block_ends_cleanly_while_a_connection_is_being_made(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, first_wait=100.0)
    async with processes.server() as server:
        processes.break_it()
        await kill(processes, server)
        run = asyncio.create_task(agent(server).run_async("Go"))
        await processes.logged("broken")  # now it waits for the next attempt
    with pytest.raises(MCPServerUnavailableError):
        await run
    assert server.session is None


async def test_the_sdks_manager_can_own_the_first_connection(processes: Processes) -> None:
    async with MCPServerManager([processes.server()]) as manager:
        [server] = manager.active_servers
        await kill(processes, server)
        await agent(server).run_async("Go")
        assert len(processes.pids) == 2
    await all_ended(processes)


# -- servers over HTTP


class Web:
    """A server process over HTTP at one port."""

    def __init__(self, folder: Path) -> None:
        self.port = reserved_port()
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, str(SCRIPT), str(self.folder), "http", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self.process.poll() is None

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    web = Web(tmp_path)
    try:
        yield web
    finally:
        web.stop()


async def test_a_server_over_http_that_restarts_is_connected_again(web: Web, processes: Processes) -> None:
    await anyio.to_thread.run_sync(web.start)
    server = MCPServerStreamableHttp({"url": f"http://127.0.0.1:{web.port}/mcp"}, name="web")
    async with server:
        await agent(server).run_async("Go")
        web.stop()
        with pytest.raises(MCPServerUnavailableError, match="MCP server web"):
            await agent(server).run_async("Go")
        await agent(server, on_mcp_failure="continue").run_async("Go")
        await anyio.to_thread.run_sync(web.start)
        backoff_is_over(server)
        scripted = model(READ)
        await agent(server, scripted=scripted).run_async("Go")
        assert "content of a" in str(outputs(scripted))
    assert processes.calls == ["read a"]


def backoff_is_over(server: Any) -> None:
    from kantan_agents.tools.mcp.server_connections import connection_of

    connection_of(server)._rest.until = 0.0


@pytest.mark.parametrize("asked", ["tools/list", "tools/call"])
async def test_a_request_that_was_refused_for_its_session_is_sent_again_in_a_new_one(asked: str) -> None:
    with SessionServer() as sessions:
        params: Any = {"url": sessions.url}
        async with MCPServerStreamableHttp(params, name="web", cache_tools_list=True) as server:
            await server.list_tools()
            if asked == "tools/list":
                server.invalidate_tools_cache()
            sessions.sessions.clear()
            scripted = model(READ)
            await agent(server, scripted=scripted).run_async("Go")
            assert "read in session-2" in str(outputs(scripted))
            assert server.session_id == "session-2"
        assert sessions.called == 1


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32000, "message": "Session expired: log in to the bank again"},
        {"code": -32600, "message": "Session not found"},
    ],
)
async def test_a_tool_that_answers_about_a_session_of_its_own_is_called_once(error: dict[str, Any]) -> None:
    with SessionServer() as sessions:
        sessions.error = error
        params: Any = {"url": sessions.url}
        async with MCPServerStreamableHttp(params, name="bank", cache_tools_list=True) as server:
            scripted = model(READ)
            await agent(server, scripted=scripted).run_async("Go")
            assert "error" in str(outputs(scripted))  # newer SDKs do not show its text to the model
        assert (sessions.called, sessions.opened) == (1, 1)


async def test_a_resource_is_read_in_a_new_session_if_the_server_has_forgotten_the_old_one() -> None:
    with SessionServer() as sessions:
        params: Any = {"url": sessions.url}
        server = with_resources(MCPServerStreamableHttp(params, name="web", cache_tools_list=True))
        async with server:
            await server.list_tools()
            sessions.sessions.clear()
            scripted = model(("read_resource", {"uri": "notes://today"}))
            await agent(server, scripted=scripted).run_async("Go")
            assert "read in session-2" in str(outputs(scripted))


async def test_calls_at_once_in_a_session_that_is_gone_share_the_new_one() -> None:
    with SessionServer() as sessions:
        params: Any = {"url": sessions.url}
        async with MCPServerStreamableHttp(params, name="web", cache_tools_list=True) as server:
            await server.list_tools()
            sessions.sessions.clear()
            replies = [model(READ) for _ in range(20)]
            await asyncio.gather(*(agent(server, scripted=one).run_async("Go") for one in replies))
            assert all("read in session-2" in str(outputs(one)) for one in replies)
        assert (sessions.called, sessions.opened) == (20, 2)


def test_the_error_is_an_error_of_the_library() -> None:
    assert issubclass(MCPServerUnavailableError, KantanAgentsError)
