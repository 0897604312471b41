"""Servers that end, and processes that fork, with durable runs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent, Durable, DurableRuns
from kantan_agents.testing import OfflineServer, RecordedRequest, function_call
from tests.durable.conftest import Scene, use_engine

_REPLIES = [[function_call("wait", {}, call_id="c1")], "Done."]

_SERVER = """
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

async def wait() -> str:
    "Wait, the first time until the end of the process."
    effect("wait")
    if FIRST:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)
    return "waited"

agent = Agent("a", "Help.", model="gpt-6.1-terra", tools=[wait], middleware=[Durable()])

async def first(runs):
    raise AssertionError("the server starts it")

@asynccontextmanager
async def lifespan(app):
    async with DurableRuns(DB, agents=[agent], look_interval=0.05):
        yield

app = FastAPI(lifespan=lifespan)

@app.post("/")
async def ask() -> str:
    context = await agent.run_async("Go.")
    return str(context["result"].final_output)

def serve():
    import socket, threading, urllib.request
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"

    def post():
        try:
            urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=120)
        except Exception as error:
            effect(type(error).__name__)

    threading.Thread(target=post, daemon=True).start()
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])

if FIRST:
    serve()
    die()  # uvicorn has sent itself the signal again, unless a handler of ours has let it end
"""


@pytest.mark.usefixtures("each_engine")
def test_a_request_that_a_server_cancels_at_its_end_goes_on(scene: Scene) -> None:
    with OfflineServer(_REPLIES) as server:
        scene.run(_SERVER, server, first=True, ends_by=(-signal.SIGKILL, -signal.SIGTERM))
        ended = scene.run(_SERVER, server, first=False)
    assert [run["output"] for run in ended] == ["Done."]
    assert scene.effects.count("wait") == 2
    assert len(server.requests) == 2


_FORKED = """
async def wait() -> str:
    "Fork a child that outlives this process."
    if FIRST:
        child = os.fork()
        if child == 0:
            import time
            from kantan_agents.durable.started_runs import Started
            effect(f"child {os.getpid()} {Started.runs}")
            os.close(1)
            os.close(2)
            time.sleep(60)
            os._exit(0)
        while not os.path.exists(LOG):
            await asyncio.sleep(0.01)
        die()
    return "waited"

agent = Agent("a", "Help.", model="gpt-6.1-terra", tools=[wait], middleware=[Durable()])
"""


@pytest.mark.usefixtures("each_engine")
def test_a_forked_child_does_not_keep_its_parent_alive(scene: Scene) -> None:
    with OfflineServer(_REPLIES) as server:
        ended = scene.killed(_FORKED, server)
    _, child, started = scene.effects[0].split()
    os.kill(int(child), signal.SIGKILL)
    assert started == "None"
    assert ended["output"] == "Done."


@pytest.mark.parametrize("place", ["file", "server"])
def test_children_of_one_process_are_processes_of_their_own(
    request: pytest.FixtureRequest, tmp_path: Path, place: str
) -> None:
    """As the workers of a server that imports the application before it forks."""
    is_file = place == "file"
    url = f"sqlite:///{tmp_path / 'runs'}" if is_file else request.getfixturevalue("postgres_url")

    def meet() -> str:
        """Return when both children are here."""
        (tmp_path / f"child {os.getpid()}").touch()
        while len([*tmp_path.glob("child *")]) < 2:
            time.sleep(0.02)
        return "met"

    def replies(asked: RecordedRequest) -> Any:
        return (
            "Done."
            if "function_call_output" in str(asked.input)
            else [function_call("meet", {}, call_id="c1")]
        )

    async def work() -> None:
        async with runs:
            assert (await agent.run_async("Go."))["result"].final_output == "Done."

    with OfflineServer(replies) as server:
        agent = Agent("a", "Help.", model=server.bundle(), tools=[meet], middleware=[Durable()])
        runs = DurableRuns(url, agents=[agent], look_interval=0.1)
        asyncio.run(runs.list_runs())  # it has connections before it forks
        children = []
        for _ in range(2):
            if not (child := os.fork()):
                with suppress(BaseException):
                    asyncio.run(work())
                    os._exit(0)
                os._exit(1)
            children.append(child)
        assert [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in children] == [0, 0]
        assert [run.status for run in asyncio.run(runs.list_runs())] == ["finished", "finished"]
        asyncio.run(runs.stop())


_OF_A_STARTED_ONE = """
async def first(runs):
    await agent.run_async(INPUT)
    child = os.fork()
    if child == 0:
        os._exit(0 if in_child() else 1)
    status = os.waitpid(child, 0)[1]
    await agent.run_async(INPUT)
    print(json.dumps({"child": status, "runs": len(await runs.list_runs())}), flush=True)

def in_child():
    async def work():
        async with DurableRuns(DB, agents=[agent]) as runs:
            await agent.run_async(INPUT)
            return len(await runs.list_runs()) == 2
    return asyncio.run(work())

agent = Agent("a", "Help.", model="gpt-6.1-terra", middleware=[Durable()])
"""


def test_a_child_of_a_started_one_can_start_its_own(scene: Scene) -> None:
    with OfflineServer(["Fine."] * 3) as server:
        assert scene.run(_OF_A_STARTED_ONE, server, first=True, dies=False) == [{"child": 0, "runs": 3}]


_WITH_TEMPORAL = _OF_A_STARTED_ONE.replace(
    "    return asyncio.run(work())",
    """    try:
        asyncio.run(work())
    except Exception as error:
        return "[E156]" in str(error) and "Start DurableRuns in the children only" in str(error)""",
)


def test_a_child_of_one_that_has_started_temporal_gets_an_error(
    scene: Scene, temporal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_engine(monkeypatch, temporal)
    with OfflineServer(["Fine."] * 2) as server:
        assert scene.run(_WITH_TEMPORAL, server, first=True, dies=False) == [{"child": 0, "runs": 2}]
