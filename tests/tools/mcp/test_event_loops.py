"""MCP servers and event loops: a run works on another loop than the connection, or says at once why not."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent
from kantan_agents.agent.running.portal import background_loop
from kantan_agents.errors import MCPServerLoopError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tools.mcp.server_connections import connection_of
from tests.programs import Preloaded
from tests.tools.conftest import outputs
from tests.tools.mcp.processes import Processes


@pytest.fixture
def processes(tmp_path: Path, preloaded: Preloaded) -> Processes:
    return Processes(tmp_path, preloaded)


@pytest.fixture
def loop_elsewhere() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in another thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def reading() -> ScriptedModel:
    return ScriptedModel([[function_call("read", {"path": "a"}, call_id="c")], [assistant_message("done")]])


def agent(server: Any, scripted: ScriptedModel, **options: Any) -> Agent[Any]:
    return Agent("clerk", "x", model=scripted, mcp_servers=[server], tool_providers=None, **options)


@pytest.mark.parametrize("choice", ["raise", "continue"])
def test_run_says_at_once_that_the_loop_of_the_connection_does_not_run(
    processes: Processes, choice: Any
) -> None:
    loop = asyncio.new_event_loop()
    server: Any = processes.server()
    loop.run_until_complete(server.connect())
    try:
        with pytest.raises(
            MCPServerLoopError, match=r"files of agent clerk .* that is not running"
        ) as raised:
            agent(server, reading(), on_mcp_failure=choice).run("Go")
        assert raised.value.code == "E37"
        assert "run_async" in str(raised.value)
    finally:
        loop.run_until_complete(server.cleanup())
        loop.close()


def test_run_says_at_once_that_it_blocks_the_loop_of_the_connection(processes: Processes) -> None:
    async def main() -> None:
        async with processes.server() as server:
            clerk = agent(server, reading())
            with pytest.raises(MCPServerLoopError, match=r"that agent\.run blocks"):
                clerk.run("Go")  # as in a cell of a notebook
            await clerk.run_async("Go")

    asyncio.run(main())
    assert processes.calls == ["read a"]


def test_run_works_with_a_connection_on_a_loop_in_another_thread(
    processes: Processes, loop_elsewhere: asyncio.AbstractEventLoop
) -> None:
    server: Any = processes.server()
    scripted = reading()
    asyncio.run_coroutine_threadsafe(server.connect(), loop_elsewhere).result()
    try:
        agent(server, scripted).run("Go")
        assert "content of a" in str(outputs(scripted))
        assert len(processes.pids) == 1
    finally:
        asyncio.run_coroutine_threadsafe(server.cleanup(), loop_elsewhere).result()


def test_run_async_works_with_a_connection_on_a_loop_in_another_thread_also_after_a_crash(
    processes: Processes, loop_elsewhere: asyncio.AbstractEventLoop
) -> None:
    server: Any = processes.server()
    scripted = reading()
    asyncio.run_coroutine_threadsafe(server.connect(), loop_elsewhere).result()
    try:
        processes.signal(signal.SIGKILL)
        asyncio.run(agent(server, scripted).run_async("Go"))
        assert processes.calls == ["read a"]
        assert len(processes.pids) == 2
    finally:
        asyncio.run_coroutine_threadsafe(server.cleanup(), loop_elsewhere).result()


def test_a_server_that_is_not_connected_is_connected_by_run_and_stays_so(processes: Processes) -> None:
    server: Any = processes.server()
    for _ in range(2):
        scripted = reading()
        agent(server, scripted).run("Go")
        assert "content of a" in str(outputs(scripted))
    asyncio.run(agent(server, reading()).run_async("Go"))
    assert len(processes.pids) == 1
    asyncio.run(server.cleanup())


def test_a_connection_whose_loop_is_closed_is_made_again(processes: Processes) -> None:
    server: Any = processes.server()
    asyncio.run(server.connect())
    agent(server, reading()).run("Go")
    assert len(processes.pids) == 2
    asyncio.run(server.cleanup())


def test_a_loop_in_another_thread_that_is_blocked_is_an_error(
    processes: Processes, loop_elsewhere: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kantan_agents.tools.mcp.loops._BEGIN_SECONDS", 0.1)
    monkeypatch.setattr("kantan_agents.tools.mcp.loops._LOOK_SECONDS", 0.1)
    server: Any = processes.server()
    asyncio.run_coroutine_threadsafe(server.connect(), loop_elsewhere).result()
    release: Future[None] = Future()
    loop_elsewhere.call_soon_threadsafe(release.result)
    try:
        with pytest.raises(MCPServerLoopError, match="something blocks it"):
            agent(server, reading()).run("Go")
    finally:
        release.set_result(None)
        asyncio.run_coroutine_threadsafe(server.cleanup(), loop_elsewhere).result()


def test_a_mark_of_a_blocked_loop_ends_with_the_run_that_blocks_it() -> None:
    from kantan_agents.tools.mcp.loops import blocking, is_blocked

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with blocking(loop):
            seen = asyncio.create_task(look(loop))
            assert is_blocked(loop)
        assert not is_blocked(loop)
        assert not await seen  # its copy of the context still has the mark

    async def look(loop: asyncio.AbstractEventLoop) -> bool:
        return is_blocked(loop)

    asyncio.run(main())


@pytest.mark.parametrize("asked", ["list_tools", "call_tool"])
def test_a_run_goes_on_if_the_event_loop_of_the_connection_ends_meanwhile(
    processes: Processes, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Any = processes.server(cache_tools_list=True)
    first_ends, is_asked = asyncio.Event(), threading.Event()
    waiting: list[asyncio.AbstractEventLoop] = []

    async def first() -> None:
        waiting.append(asyncio.get_running_loop())
        await agent(server, ScriptedModel([[assistant_message("done")]])).run_async("Go")

        async def hang(*_: Any, **__: Any) -> None:
            monkeypatch.undo()
            first_ends.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(server, asked, hang)
        is_asked.set()
        await first_ends.wait()

    thread = threading.Thread(target=lambda: asyncio.run(first()))
    thread.start()
    assert is_asked.wait(60)
    scripted = reading()
    agent(server, scripted).run("Go")
    thread.join()
    background_loop.stop()  # and with it the new connection
    if asked == "list_tools":
        assert processes.calls == ["read a"]
    else:  # it may have been executed
        assert processes.calls == []
        assert "may have been executed or not" in str(outputs(scripted))


def test_an_attempt_on_an_event_loop_that_has_ended_is_given_up(processes: Processes) -> None:
    server: Any = processes.server()
    ended = asyncio.new_event_loop()
    ended.close()
    connection = connection_of(server)
    # As an `asyncio.run` that ends at the moment in which another thread needs the server leaves it.
    connection._attempt, connection._attempt_loop = Future(), ended
    asyncio.run(agent(server, reading()).run_async("Go"))
    assert processes.calls == ["read a"]
