"""A run is unfinished in the database from its first span to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agents import trace

from kantan_agents import Agent, Next, Run, SQLiteRecorder, TraceStore
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.traces.recorder.database_file import DatabaseFile


class Hanging:
    """Agents of which one waits."""

    def __init__(self) -> None:
        self.waits, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def wait(self) -> str:
        """Wait."""
        self.waits.set()
        await self.may_go_on.wait()
        return "waited"

    def in_a_tool(self) -> Agent[Any]:
        return self.calling("wait", [self.wait])

    def in_the_second_model_call(self) -> Agent[Any]:
        def quick() -> str:
            """Be quick."""
            return "quick"

        async def reply(call: Any) -> Any:
            if len(call.input) > 1:
                await self.wait()
                return [assistant_message("done")]
            return [function_call("quick", {}, call_id="c")]

        return Agent("outer", "b", model=ScriptedModel(reply), tools=[quick])

    def in_middleware_after_its_work(self) -> Agent[Any]:
        async def slow(run: Run, call_next: Next) -> None:
            await call_next(run)
            await self.wait()

        return Agent("outer", "b", model=ScriptedModel(["done"]), middleware=[slow])

    def in_a_delegated_run(self) -> Agent[Any]:
        return self.calling("ask", [self.in_a_tool().as_tool("ask", "Ask.")], {"input": "x"})

    def calling(self, name: str, tools: list[Any], arguments: Any = None) -> Agent[Any]:
        script = [[function_call(name, arguments or {}, call_id="c")], [assistant_message("done")]]
        return Agent("outer", "b", model=ScriptedModel(script), tools=tools)


@pytest.mark.parametrize("is_inside", [False, True])
@pytest.mark.parametrize(
    "agent_of",
    [
        Hanging.in_a_tool,
        Hanging.in_the_second_model_call,
        Hanging.in_a_delegated_run,
        Hanging.in_middleware_after_its_work,
    ],
)
async def test_it_is_unfinished_until_it_has_ended(
    recorder_at: Callable[..., SQLiteRecorder],
    file: DatabaseFile,
    agent_of: Callable[[Hanging], Agent[Any]],
    is_inside: bool,
) -> None:
    recorder, hanging = recorder_at(file.path), Hanging()

    async def run() -> None:
        agent = agent_of(hanging)
        if is_inside:
            with trace("mine"):
                await agent.run_async("question")
        else:
            await agent.run_async("question")

    def status() -> tuple[str, str | None]:
        assert recorder.force_flush(10)
        (found,) = TraceStore(file.path).traces()
        return found.status, found.output

    running = asyncio.create_task(run())
    await hanging.waits.wait()
    assert status() == ("unfinished", None)
    hanging.may_go_on.set()
    await running
    assert status() == ("ok", "done")


async def test_the_second_run_in_the_trace_of_a_user_is_unfinished_in_its_first_model_call(
    recorder_at: Callable[..., SQLiteRecorder], file: DatabaseFile
) -> None:
    recorder, hanging = recorder_at(file.path), Hanging()

    async def reply(_call: Any) -> str:
        await hanging.wait()
        return "second"

    async def run() -> None:
        with trace("mine"):
            await Agent("a", "A", model=ScriptedModel(["first"])).run_async("question")
            await Agent("b", "B", model=ScriptedModel(reply)).run_async("question")

    running = asyncio.create_task(run())
    await hanging.waits.wait()
    assert recorder.force_flush(10)
    store = TraceStore(file.path)
    (found,) = store.traces()
    assert (found.status, found.ended_at, found.output) == ("unfinished", None, None)
    assert [(one.prompt_name, one.unfinished) for one in store.prompts()] == [("a", 0), ("b", 1)]
    assert [run.agent for run in store.trace(found.trace_id).runs] == ["a"]
    hanging.may_go_on.set()
    await running
    assert recorder.force_flush(10)
    ended = store.trace(found.trace_id)
    assert (ended.summary.status, ended.summary.output, ended.missing) == ("ok", "second", ())
    assert all(span.ended_at for span in ended.spans)
