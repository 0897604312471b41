"""``run`` in a finalizer or a signal handler, on a blocked loop, and while the interpreter exits."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import pytest

from kantan_agents import Agent
from kantan_agents.agent.running import call, portal
from kantan_agents.agent.running.portal import BackgroundLoop
from kantan_agents.errors import InterpreterExitError, RunInCollectorError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.programs import Preloaded

from .test_sync_run import PREAMBLE, finish


def new_agent(*tools: Any, **options: Any) -> Agent:
    calls = [[function_call(tool.__name__, {}, call_id=tool.__name__)] for tool in tools]
    model = ScriptedModel([*calls, *[[assistant_message("x")]] * 20])
    return Agent("a", "b", model=model, tools=tools, **options)


class Finalized:
    """Garbage that runs an agent when the collector finds it."""

    def __init__(self, agent: Agent, outcomes: list[Any]) -> None:
        self.cycle = self
        self.agent = agent
        self.outcomes = outcomes

    def __del__(self) -> None:
        try:
            self.outcomes.append(self.agent.run("bye")["result"].final_output)
        except Exception as error:  # noqa: BLE001 - the outcome
            self.outcomes.append(error)


def test_a_run_in_a_finalizer_that_the_collector_calls_is_refused() -> None:
    outcomes: list[Any] = []
    Finalized(new_agent(), outcomes)
    gc.collect()
    (error,) = outcomes
    assert isinstance(error, RunInCollectorError)
    assert error.code == "E25"
    assert new_agent().run("hi")["result"].final_output == "x"


def test_a_run_in_a_collection_on_the_loops_own_thread_is_refused() -> None:
    outcomes: list[Any] = []

    async def collect() -> str:
        """Collect."""
        Finalized(new_agent(), outcomes)
        gc.collect()
        asyncio.get_running_loop().call_soon(collect_later)
        return "collected"

    def collect_later() -> None:
        Finalized(new_agent(), outcomes)
        gc.collect()

    assert new_agent(collect).run("hi")["result"].final_output == "x"
    assert [type(outcome) for outcome in outcomes] == [RunInCollectorError] * 2


def test_a_collection_in_one_thread_does_not_concern_runs_in_another() -> None:
    outcomes: list[Any] = []

    class Waits:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            with ThreadPoolExecutor(1) as pool:
                outcomes.append(pool.submit(new_agent().run, "hi").result(60)["result"].final_output)

    Waits()
    gc.collect()
    assert outcomes == ["x"]


def test_a_run_in_a_finalizer_without_the_collector_works() -> None:
    outcomes: list[Any] = []
    finalized = Finalized(new_agent(), outcomes)
    finalized.cycle = None
    del finalized
    assert outcomes == ["x"]


STEPS = tuple(module.__file__ for module in (portal, call, threading))


@pytest.mark.parametrize("is_in_loop", [False, True])
def test_a_signal_handler_may_run_an_agent_during_the_first_run(is_in_loop: bool) -> None:
    """The signal arrives before the first line of a first run, then before the second line of another, ..."""
    outcomes: list[str] = []
    own: BackgroundLoop

    async def answer() -> str:
        await asyncio.sleep(0)
        return "answered"

    def handle(_number: int, _frame: FrameType | None) -> None:
        outcomes.append(own.run(answer))

    def first_run(step: int) -> int:
        """Raise the signal before the line number ``step``; return how many lines there are."""
        lines = 0

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal lines
            if frame.f_code.co_filename not in STEPS:
                return None
            if event == "line":
                lines += 1
                if lines == step:
                    sys.settrace(None)
                    signal.raise_signal(signal.SIGUSR1)
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            assert own.run(answer) == "answered"
        finally:
            sys.settrace(before)
            own.stop()
        return lines

    async def in_loop(step: int) -> int:
        loop = asyncio.get_running_loop()
        lines = first_run(step)
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0)
        return lines

    def begin(step: int) -> int:
        nonlocal own
        own = BackgroundLoop()
        return asyncio.run(in_loop(step)) if is_in_loop else first_run(step)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        count = begin(0)
        assert count > 30
        for step in range(1, count + 1):
            begin(step)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(outcomes) >= count - 5  # the number of lines depends on how the threads alternate


def test_a_blocked_loop_does_not_block_the_run_it_waits_for() -> None:
    inner = new_agent()

    async def ask() -> str:
        """Ask in a thread of its own, and block the loop until it has answered."""
        with ThreadPoolExecutor(1) as pool:
            return str(pool.submit(inner.run, "inner").result(60)["result"].final_output)

    assert new_agent(ask).run("hi")["result"].final_output == "x"
    assert inner.sdk_agent.model.calls


def test_a_tool_that_stops_its_event_loop_does_not_end_it() -> None:
    async def stop() -> str:
        """Stop the loop."""
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return "stopped"

    assert new_agent(stop).run("hi")["result"].final_output == "x"
    assert new_agent().run("hi")["result"].final_output == "x"


def test_a_run_that_the_end_of_the_loop_cancels_says_so() -> None:
    own, begun = BackgroundLoop(), threading.Event()

    async def stay() -> None:
        begun.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(own.run, stay)
        assert begun.wait(60)
        own.stop()
        with pytest.raises(InterpreterExitError) as caught:
            call.result(60)
    assert caught.value.code == "E26"


def run_script(preloaded: Preloaded, body: str, **options: Any) -> tuple[int, list[str], str]:
    code = textwrap.dedent(PREAMBLE) + textwrap.dedent(body)
    status, out, err = finish(preloaded.popen(["-W", "ignore", "-c", code], encoding="utf-8", **options))
    return status, out.splitlines(), err


def test_ctrl_c_during_a_collection_is_not_lost_and_later_runs_work(preloaded: Preloaded) -> None:
    ended = run_script(
        preloaded,
        """
        import ctypes, functools, gc, weakref

        class Garbage:
            def __init__(self):
                self.cycle = self

        # In C from end to end: Python delivers the signal in the next function that is not.
        interrupt = map(ctypes.CDLL(None)["raise"], [signal.SIGINT])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        kept = weakref.ref(Garbage(), functools.partial(next, interrupt))
        try:
            gc.collect()
        except KeyboardInterrupt:
            print("interrupted")
        gc.disable()
        print(new_agent().run("hi")["result"].final_output)
        """,
    )
    assert ended == (0, ["interrupted", "x"], "")


def test_an_interrupt_while_a_run_is_sent_to_its_loop_cancels_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, cancelled = threading.Event(), threading.Event()
    send = call.Call.send

    async def stay() -> None:
        """Stay."""
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def send_and_interrupt(sent: call.Call[Any], loop: asyncio.AbstractEventLoop) -> None:
        send(sent, loop)
        assert begun.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(call.Call, "send", send_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        new_agent(stay).run("hi")
    assert cancelled.is_set()


def test_a_sync_tool_works_at_interpreter_exit(preloaded: Preloaded) -> None:
    ended = run_script(
        preloaded,
        """
        import atexit, socket
        from kantan_agents.testing import function_call

        def look(name):
            def resolve() -> str:
                "Resolve a name, in a thread of the loop."
                print(name, socket.gethostbyname("127.0.0.1"))
                return "done"

            model = ScriptedModel([[function_call("resolve", {}, call_id="c")], [assistant_message("x")]])
            result = Agent("a", "b", model=model, tools=[resolve]).run("hi")["result"]
            print(name, result.to_input_list()[-2]["output"], result.final_output)

        atexit.register(look, "after the loop")
        new_agent().run("hi")
        atexit.register(look, "before it ends")
        """,
    )
    assert ended == (
        0,
        [
            "before it ends 127.0.0.1",
            "before it ends done x",
            "after the loop 127.0.0.1",
            "after the loop done x",
        ],
        "",
    )


@pytest.mark.parametrize("first", ["", "new_agent().run('hi')"])
def test_a_thread_may_run_an_agent_while_the_interpreter_exits(preloaded: Preloaded, first: str) -> None:
    ended = run_script(
        preloaded,
        f"""
        from kantan_agents.testing import function_call

        def count() -> str:
            "Count, in a thread of the loop."
            return "done"

        def work():
            threading.main_thread().join()
            model = ScriptedModel([[function_call("count", {{}}, call_id="c")], [assistant_message("x")]])
            result = Agent("a", "b", model=model, tools=[count]).run("hi")["result"]
            print(result.to_input_list()[-2]["output"], result.final_output)

        {first}
        threading.Thread(target=work).start()
        """,
    )
    assert ended == (0, ["done x"], "")


FIRST = "new_agent().run('hi')"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "place", "call"),
    [
        *(
            (first, place, 'agent.run("hi")')
            for first in ("", FIRST)
            for place in ("globals()", "vars(builtins)", "vars(sys)", "vars(portal)")
        ),
        # Without a first run, asyncio itself has no loop any longer.
        (FIRST, "globals()", 'run_loop(agent.run_async("hi"))'),
        (FIRST, "vars(builtins)", 'run_loop(agent.run_async("hi"))'),
        ("", "vars(sys)", 'agent.stream("hi")'),
    ],
)
def test_a_finalizer_while_the_interpreter_exits_may_not_run_an_agent(
    preloaded: Preloaded, first: str, place: str, call: str
) -> None:
    ended = run_script(
        preloaded,
        f"""
        import asyncio, builtins
        from kantan_agents.agent.running import portal

        class Finalized:
            def __init__(self):
                self.agent, self.write, self.text = new_agent(), os.write, str
                self.run_loop = asyncio.run

            def __del__(self):
                try:
                    agent, run_loop = self.agent, self.run_loop
                    {call}
                except ValueError as error:
                    self.write(1, self.text(error).encode() + b"\\n")

        {first}
        {place}["kept"] = Finalized()
        """,
        thorough=True,  # the interpreter removes its modules
    )
    assert ended == (0, [str(InterpreterExitError())], "")


def test_a_tool_may_fork_and_the_child_may_run_an_agent(preloaded: Preloaded) -> None:
    ended = run_script(
        preloaded,
        """
        from kantan_agents.testing import function_call

        async def fork() -> str:
            "Fork."
            pid = os.fork()
            if pid == 0:
                sys.stdout.write(new_agent().run("hi")["result"].final_output + "\\n")
                sys.stdout.flush()
                os._exit(0)
            return str(os.waitpid(pid, 0)[1])

        model = ScriptedModel([[function_call("fork", {}, call_id="c")], [assistant_message("x")]])
        result = Agent("a", "b", model=model, tools=[fork]).run("hi")["result"]
        print(result.to_input_list()[-2]["output"], new_agent().run("again")["result"].final_output)
        """,
    )
    assert ended == (0, ["x", "0 x"], "")
