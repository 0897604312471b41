"""``run``: with no loop, inside one, from threads, after fork, at exit, and interrupted."""

from __future__ import annotations

import asyncio
import os
import signal
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from agents import trace

from kantan_agents import Agent
from kantan_agents.agent.running.portal import BackgroundLoop, background_loop
from kantan_agents.testing import OfflineServer, ScriptedModel, assistant_message, function_call
from tests.programs import Preloaded, Program


def new_agent(count: Any = 50, **options: Any) -> Any:
    return Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * count), **options)


def loop_of_run(agent: Any = None) -> Any:
    loops = []

    async def note(run: Any, call_next: Any) -> None:
        loops.append((asyncio.get_running_loop(), threading.current_thread()))
        await call_next(run)

    new_agent(middleware=[note]).run("hi")
    return loops[0]


def test_all_sync_runs_share_one_long_lived_loop() -> None:
    first, thread = loop_of_run()
    second, _ = loop_of_run()
    assert first is second
    assert thread.daemon and thread is not threading.current_thread()

    async def inside() -> Any:
        return loop_of_run()[0]

    assert asyncio.run(inside()) is first
    with ThreadPoolExecutor(4) as pool:
        assert {pool.submit(loop_of_run).result()[0] for _ in range(4)} == {first}


@pytest.mark.fast("a run over HTTP")
def test_http_connections_are_reused_between_sync_runs() -> None:
    ports = []

    class Server(OfflineServer):
        async def _handle(self, request: Any) -> Any:
            ports.append(request.client.port)
            return await super()._handle(request)

    with Server(["x"] * 3, keep_alive=True) as server:
        agent = Agent("a", "b", model=server.bundle())
        for _ in range(3):
            agent.run("hi")
        background_loop.run(agent.sdk_agent.model._client.close)
    assert len(ports) == 3
    assert len(set(ports)) == 1


def test_many_threads_may_run_agents_concurrently() -> None:
    agent = new_agent(100)
    with ThreadPoolExecutor(10) as pool:
        contexts = list(pool.map(lambda n: agent.run(f"question {n}"), range(100)))
    assert [c["history"][0]["text"] for c in contexts] == [f"question {n}" for n in range(100)]


def test_a_sync_run_inside_an_async_tool_of_a_sync_run_does_not_deadlock() -> None:
    inner = new_agent()

    async def ask() -> str:
        """Ask the other agent, blocking."""
        return inner.run("inner")["result"].final_output

    model = ScriptedModel([[function_call("ask", {}, call_id="c")], [assistant_message("done")]])
    assert Agent("outer", "b", model=model, tools=[ask]).run("hi")["result"].final_output == "done"
    assert inner.sdk_agent.model.calls


def test_the_callers_trace_is_the_runs_trace(traces: Any) -> None:
    with trace("mine") as mine:
        new_agent().run("hi")
    (record,) = traces.traces()
    assert record.trace_id == mine.trace_id
    assert len(traces.spans(name="agent_run")) == 1


def test_errors_are_raised_in_the_calling_thread_with_their_run() -> None:
    with pytest.raises(ConnectionError) as caught:
        Agent("a", "b", model=ScriptedModel([ConnectionError("gone")])).run("hi")
    assert caught.value.kantan_run.input == "hi"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_an_exit_raised_inside_a_run_reaches_the_caller_and_leaves_the_loop_running(error: Any) -> None:
    async def leave(run: Any, call_next: Any) -> None:
        raise error

    loop, _ = loop_of_run()
    with pytest.raises(type(error)):
        new_agent(middleware=[leave]).run("hi")
    assert loop_of_run()[0] is loop


def test_a_stopped_loop_is_started_again() -> None:
    own = BackgroundLoop()

    async def answer() -> Any:
        return threading.current_thread()

    first = own.run(answer)
    own.stop()
    assert not first.is_alive()
    own.stop()
    second = own.run(answer)
    assert second is not first and second.is_alive()
    own.stop()


PREAMBLE = """
    import asyncio, os, signal, sys, threading, time
    from agents import set_trace_processors
    from kantan_agents import Agent
    from kantan_agents.testing import OfflineServer, Reply, ScriptedModel, assistant_message
    set_trace_processors([])

    def new_agent(count=50, **options):
        return Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * count), **options)
"""


@pytest.fixture
def script(preloaded: Preloaded) -> Any:
    """``script(body)``: starts a process behind ``PREAMBLE``."""

    def start(body: str) -> Program:
        code = textwrap.dedent(PREAMBLE) + textwrap.dedent(body)
        return preloaded.popen(["-W", "ignore", "-c", code], encoding="utf-8")

    return start


def finish(process: Any) -> Any:
    out, err = process.communicate(timeout=60)
    return process.returncode, out.strip(), err.strip()


def test_after_a_fork_the_child_has_a_loop_of_its_own(script: Any) -> None:
    code, out, err = finish(
        script("""
        agent = new_agent()
        agent.run("parent")
        children = []
        for number in range(3):
            pid = os.fork()
            if pid == 0:
                text = agent.run(f"child {number}")["history"][0]["text"]
                sys.stdout.write(text + "\\n")
                sys.stdout.flush()
                os._exit(0)
            children.append(pid)
        codes = [os.waitpid(pid, 0)[1] for pid in children]
        print(codes, agent.run("parent again")["history"][0]["text"])
        """)
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert sorted(lines[:3]) == ["child 0", "child 1", "child 2"]
    assert lines[3] == "[0, 0, 0] parent again"


def test_it_works_at_interpreter_exit_and_does_not_delay_it(script: Any) -> None:
    code, out, err = finish(
        script("""
        import atexit
        atexit.register(lambda: print("early handler:", new_agent().run("x")["result"].final_output))
        print(new_agent().run("hi")["result"].final_output)
        atexit.register(lambda: print("late handler:", new_agent().run("x")["result"].final_output))
        """)
    )
    assert (code, err) == (0, "")
    # Handlers run in reverse: the late one before our loop is stopped, the early one after.
    assert out.splitlines() == ["x", "late handler: x", "early handler: x"]


def test_the_first_run_may_happen_at_exit(script: Any) -> None:
    code, out, err = finish(
        script("""
        import atexit
        agent = new_agent()
        atexit.register(lambda: print(agent.run("x")["result"].final_output))
        """)
    )
    assert (code, out, err) == (0, "x", "")


def test_the_interpreter_ends_while_another_thread_is_still_running_an_agent(script: Any) -> None:
    process = script("""
        server = OfflineServer([Reply("late", delay=30)]).__enter__()
        agent = Agent("a", "b", model=server.bundle())
        threading.Thread(target=lambda: agent.run("hi"), daemon=True).start()
        while not server.requests:
            time.sleep(0.01)
        print("leaving")
        """)
    code, out, _ = finish(process)
    assert (code, out) == (0, "leaving")


def test_ctrl_c_cancels_the_run_and_leaves_no_thread_hanging(script: Any) -> None:
    process = script("""
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
        server = OfflineServer([Reply("late", delay=30), "fine"]).__enter__()
        ended = []

        async def note(run, call_next):
            try:
                await call_next(run)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        agent = Agent("a", "b", model=server.bundle(), middleware=[note])
        context = {}
        threading.Thread(
            target=lambda: [time.sleep(0.01) for _ in iter(lambda: bool(server.requests), True)]
            and None or os.kill(os.getpid(), signal.SIGINT)
        ).start()
        try:
            agent.run("hi", context)
        except KeyboardInterrupt:
            print("interrupted", ended, context["history"], context["result"])
        print(agent.run("again")["result"].final_output)
        server.__exit__(None, None, None)
        print([t.name for t in threading.enumerate() if not t.daemon])
        """)
    code, out, err = finish(process)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "interrupted ['cancelled'] [] None",
        "fine",
        "['MainThread']",
    ]


def test_run_async_starts_no_thread(script: Any) -> None:
    code, out, err = finish(
        script("""
        async def main():
            agent = new_agent()
            await agent.run_async("hi")
            print([t.name for t in threading.enumerate()])
        asyncio.run(main())
        """)
    )
    assert (code, out, err) == (0, "['MainThread']", "")


async def test_nothing_blocks_the_event_loop() -> None:
    from blockbuster import blockbuster_ctx

    with OfflineServer(["warm", '{"a": 1}', "x"]) as server:

        async def tool() -> str:
            """Do it."""
            return "done"

        agent = Agent("a", "Hi {{ $ctx.n }}", model=server.bundle(), tools=[tool])
        await agent.run_async("import what is imported late")
        with blockbuster_ctx():
            with pytest.raises(Exception, match=r"(?i)blocking"):
                time.sleep(0)  # noqa: ASYNC251 - the check itself is checked
            for _ in range(2):
                await agent.run_async("hi", {"n": 1})


def test_signal_handlers_are_not_changed() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    new_agent().run("hi")
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert os.getpid()


def test_sync_runs_nested_deep_in_async_tools_do_not_deadlock(script: Any) -> None:
    code, out, err = finish(
        script("""
        from kantan_agents.testing import function_call

        def asking(name, inner):
            async def ask() -> str:
                "Ask the next agent, blocking."
                return inner.run("inner")["result"].final_output

            model = ScriptedModel([[function_call("ask", {}, call_id="c")], [assistant_message(name)]])
            return Agent(name, "b", model=model, tools=[ask])

        agent = new_agent()
        for depth in range(3):
            agent = asking(f"level {depth}", agent)
        print(agent.run("hi")["result"].final_output)
        """)
    )
    assert (code, out, err) == (0, "level 2", "")
