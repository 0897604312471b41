"""A run is unfinished in the database from its first span to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agents import trace

from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.traces.recorder import SQLiteRecorder
from kantan_agents.traces.store import TraceStore
from tests.traces.recorder.database_file import DatabaseFile

pytestmark = pytest.mark.anyio


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

    def in_a_delegated_run(self) -> Agent[Any]:
        return self.calling("ask", [self.in_a_tool().as_tool("ask", "Ask.")], {"input": "x"})

    def calling(self, name: str, tools: list[Any], arguments: Any = None) -> Agent[Any]:
        script = [[function_call(name, arguments or {}, call_id="c")], [assistant_message("done")]]
        return Agent("outer", "b", model=ScriptedModel(script), tools=tools)


@pytest.mark.parametrize("is_inside", [False, True])
@pytest.mark.parametrize(
    "agent_of", [Hanging.in_a_tool, Hanging.in_the_second_model_call, Hanging.in_a_delegated_run]
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
