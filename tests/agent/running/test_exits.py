"""What a run raises reaches the caller of ``run``, whatever it is; other runs and later runs continue."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import agents
import pytest
from agents import function_tool
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, AgentDefinition, Middleware, task_tool
from kantan_agents.testing import ScriptedModel, assistant_message, function_call

EXITS: dict[str, Callable[[], BaseException]] = {
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "a BaseException": lambda: BaseException("of its own"),
}


def model(*calls: str) -> ScriptedModel:
    asked = [function_call(name, arguments(name), call_id=f"{name}{n}") for n, name in enumerate(calls)]
    return ScriptedModel([*([asked] if calls else []), [assistant_message("done")]])


def arguments(tool: str) -> dict[str, Any]:
    if tool == "Task":
        return {"description": "d", "prompt": "p", "subagent_type": "child"}
    return {"input": "go"} if tool == "inner" else {}


def tool_raising(error: BaseException, name: str = "leave") -> Any:
    async def leave() -> str:
        raise error

    return function_tool(leave, name_override=name)


async def wait() -> str:
    """Wait."""
    await asyncio.sleep(0)
    return "waited"


def plain(error: BaseException) -> Agent:
    return Agent("a", "b", model=model("leave"), tools=[tool_raising(error)])


def in_thread(error: BaseException) -> Agent:
    def leave() -> str:
        """Leave."""
        raise error

    return Agent("a", "b", model=model("leave"), tools=[leave])


def in_parallel(error: BaseException) -> Agent:
    return Agent("a", "b", model=model("wait", "leave", "wait"), tools=[tool_raising(error), wait])


def in_handoff(error: BaseException) -> Agent:
    def on_handoff(_: Any) -> None:
        raise error

    target = agents.Agent("target", instructions="b", model=model())
    return Agent(
        "a", "b", model=model("transfer_to_target"), handoffs=[agents.handoff(target, on_handoff=on_handoff)]
    )


def behind_handoff(error: BaseException) -> Agent:
    target = Agent("target", "b", model=model("leave"), tools=[tool_raising(error)])
    return Agent("a", "b", model=model("transfer_to_target"), handoffs=[target])


def in_agent_as_tool(error: BaseException) -> Agent:
    inner = plain(error).sdk_agent.as_tool("inner", "An agent.")
    return Agent("a", "b", model=model("inner"), tools=[inner])


def in_subagent(error: BaseException) -> Agent:
    child = AgentDefinition("child", "d", "p", tools=("leave",))
    return Agent(
        "a",
        "b",
        model=model("Task"),
        tools=[task_tool([child], model=model("leave")), tool_raising(error)],
    )


def in_sync_run_of_tool(error: BaseException) -> Agent:
    inner = plain(error)

    async def ask() -> str:
        """Ask."""
        return str(inner.run("x")["result"].final_output)

    return Agent("a", "b", model=model("ask"), tools=[ask])


def in_stream_of_tool(error: BaseException) -> Agent:
    inner = plain(error)

    async def ask() -> str:
        """Ask."""
        async with inner.stream("x") as run:
            async for _ in run:
                pass
        return str(run.context["result"].final_output)

    return Agent("a", "b", model=model("ask"), tools=[ask])


def in_middleware(error: BaseException) -> Agent:
    async def leave(run: Any, call_next: Any) -> None:
        raise error

    return Agent("a", "b", model=model(), middleware=[leave])


def after_the_answer(error: BaseException) -> Agent:
    async def leave(run: Any, call_next: Any) -> None:
        await call_next(run)
        raise error

    return Agent("a", "b", model=model(), middleware=[leave])


def around_model(error: BaseException) -> Agent:
    class Leaves(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            raise error

    return Agent("a", "b", model=model(), middleware=[Leaves()])


def around_tool(error: BaseException) -> Agent:
    class Leaves(Middleware):
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            raise error

    return Agent("a", "b", model=model("wait"), tools=[wait], middleware=[Leaves()])


def in_renderer(error: BaseException) -> Agent:
    def render(text: str, context: Any) -> str:
        raise error

    return Agent("a", "b", model=model(), renderer=render)


def in_model(error: BaseException) -> Agent:
    class Leaves(ScriptedModel):
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            raise error

    return Agent("a", "b", model=Leaves([]))


def in_metadata(error: BaseException) -> Agent:
    def metadata(context: Any) -> dict[str, Any]:
        raise error

    return Agent("a", "b", model=model(), metadata=metadata)


def in_hooks(error: BaseException) -> Agent:
    class Leaves(agents.AgentHooks[Any]):
        async def on_start(self, context: Any, agent: Any) -> None:
            raise error

    return Agent("a", "b", model=model(), hooks=Leaves())


def in_guardrail(error: BaseException) -> Agent:
    @agents.input_guardrail
    async def check(context: Any, agent: Any, input: Any) -> Any:
        raise error

    return Agent("a", "b", model=model(), input_guardrails=[check])


def in_observer(error: BaseException) -> Agent:
    def observe(event: Any) -> None:
        if event.type == "model_call_started":
            raise error

    agent = Agent("a", "b", model=model())
    agent.subscribe(observe)
    return agent


def in_async_observer(error: BaseException) -> Agent:
    async def observe(event: Any) -> None:
        await asyncio.sleep(0)
        if event.type == "tool_call_started":
            raise error

    agent = Agent("a", "b", model=model("wait"), tools=[wait])
    agent.subscribe(observe)
    return agent


PLACES = (
    plain,
    in_thread,
    in_parallel,
    in_handoff,
    behind_handoff,
    in_agent_as_tool,
    in_subagent,
    in_sync_run_of_tool,
    in_stream_of_tool,
    in_middleware,
    after_the_answer,
    around_model,
    around_tool,
    in_renderer,
    in_model,
    in_metadata,
    in_hooks,
    in_guardrail,
    in_observer,
    in_async_observer,
)


@contextmanager
def bystander() -> Iterator[None]:
    """A sync run in another thread that is in a tool inside the block, and finishes after it."""
    begun, wakers = threading.Event(), []

    async def stay() -> str:
        """Stay."""
        awake = asyncio.Event()
        loop = asyncio.get_running_loop()
        wakers.append(lambda: loop.call_soon_threadsafe(awake.set))
        begun.set()
        await awake.wait()
        return "stayed"

    agent = Agent("bystander", "b", model=model("stay"), tools=[stay])
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(agent.run, "hi")
        assert begun.wait(60)
        try:
            yield
        finally:
            wakers[0]()
            assert run.result(60)["result"].final_output == "done"


def was_ignored(place: Any, error: BaseException, raised: BaseException) -> bool:
    """Return whether Python has replaced a GeneratorExit.

    A task that raises it closes the coroutine that awaits the task, and a coroutine that is being closed must
    not await anything in its clean-up. The plain SDK awaits a guardrail, and an async observer is awaited.
    """
    is_closed = isinstance(error, GeneratorExit) and place in (in_guardrail, in_async_observer)
    return is_closed and str(raised) == "coroutine ignored GeneratorExit"


def check(place: Callable[[BaseException], Agent], error: BaseException) -> None:
    context: dict[str, Any] = {}
    with bystander():
        try:
            place(error).run("hi", context)
        except BaseException as raised:  # noqa: BLE001 - the outcome
            assert raised is error or was_ignored(place, error, raised)  # noqa: PT017 - any other is a failure
            assert context.get("result") is None
            assert not context.get("history")
        else:
            # As with the plain SDK, a tool, an observer or a hook that is cancelled does not end its run.
            assert isinstance(error, asyncio.CancelledError)
            assert context["result"].final_output == "done"
    assert Agent("later", "b", model=model()).run("hi")["result"].final_output == "done"


@pytest.mark.parametrize("kind", ["SystemExit", "KeyboardInterrupt", "GeneratorExit"])
@pytest.mark.parametrize("place", PLACES)
def test_an_exit_from_any_place_in_a_run_reaches_the_caller_and_others_continue(
    place: Any, kind: str
) -> None:
    check(place, EXITS[kind]())


@given(st.sampled_from(PLACES), st.sampled_from(sorted(EXITS)))
def test_whatever_is_raised_reaches_the_caller_and_a_bystander_finishes(place: Any, kind: str) -> None:
    check(place, EXITS[kind]())


@contextmanager
def own_loop() -> Iterator[None]:
    """Close the loop of this thread afterwards, which the SDK leaves open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        asyncio.set_event_loop(None)


@pytest.mark.parametrize("place", [plain, in_thread, in_parallel])
def test_the_caller_gets_what_the_plain_sdk_raises(place: Any) -> None:
    error = SystemExit(3)
    ours = place(error)
    with own_loop(), pytest.raises(SystemExit) as raised:
        agents.Runner.run_sync(ours.sdk_agent, "hi")
    assert raised.value is error
    with pytest.raises(SystemExit) as raised:
        place(error).run("hi")
    assert raised.value is error


@pytest.mark.parametrize("place", PLACES)
def test_an_exit_ends_an_async_run_and_no_more_than_asyncio_ends(place: Any) -> None:
    error = GeneratorExit()

    async def main() -> str:
        with pytest.raises((GeneratorExit, RuntimeError)) as raised:
            await place(error).run_async("hi")
        assert raised.value is error or was_ignored(place, error, raised.value)
        return "the loop goes on"

    assert asyncio.run(main()) == "the loop goes on"
    exit_ = SystemExit(3)
    with pytest.raises(SystemExit) as raised:
        asyncio.run(place(exit_).run_async("hi"))
    assert raised.value is exit_
