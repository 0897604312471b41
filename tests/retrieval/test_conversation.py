"""What a conversation was about before: follow-ups, sessions, and tools that are asked for at once."""

from __future__ import annotations

from typing import Any

import pytest
from agents import ModelSettings, RunConfig, SQLiteSession

from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.retrieval.conftest import Saying, calling, finding, fruit_agent, outputs, shown, tool

pytestmark = pytest.mark.anyio

CALLED: list[Any] = [
    {"role": "user", "content": "an apple"},
    {"type": "function_call", "call_id": "c", "name": "quince", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "which?"},
    {"role": "assistant", "content": "Shall I?"},
]


async def test_what_was_called_before_is_shown_again_and_a_short_answer_is_understood() -> None:
    model = calling()
    await fruit_agent(model).run_async([*CALLED, {"role": "user", "content": "yes please"}])
    assert shown(model) == [["find_tools", "quince", "apple"]]


async def test_what_the_rules_deny_meanwhile_is_not_shown_again() -> None:
    model = calling()
    context = {"tool_rules": {"deny": ["quince"]}}
    await fruit_agent(model).run_async([*CALLED, {"role": "user", "content": "a fig"}], context)
    assert shown(model) == [["find_tools", "fig"]]


async def test_a_session_is_looked_into() -> None:
    session = SQLiteSession("s")
    model = ScriptedModel([[function_call("fig", {}, call_id="f")], *[[assistant_message("Shall I?")]] * 2])
    agent = fruit_agent(model)
    await agent.run_async("a plum", session=session)
    await agent.run_async("yes please", session=session)
    assert shown(model)[-1] == ["find_tools", "fig", "plum"]
    session.close()


async def test_the_history_of_the_context_is_looked_into() -> None:
    model = ScriptedModel([[assistant_message("Shall I?")]] * 2)
    agent = fruit_agent(model)
    context = await agent.run_async("a plum", {})
    await agent.run_async("yes please", context)
    assert shown(model) == [["find_tools", "plum"]] * 2


@pytest.mark.parametrize("in_config", [True, False])
async def test_a_tool_the_model_has_to_call_is_shown(in_config: bool) -> None:
    model = calling("melon")
    settings = ModelSettings(tool_choice="melon")
    if in_config:
        await fruit_agent(model).run_async("an apple", run_config=RunConfig(model_settings=settings))
    else:
        await fruit_agent(model, model_settings=settings).run_async("an apple")
    assert shown(model)[0] == ["find_tools", "apple", "melon"]
    assert outputs(model) == ["melon done"]


async def test_what_is_promised_is_kept() -> None:
    numbered = [tool(f"n{place}", "Counts.") for place in range(40)]
    asked = iter([[f"n{start}", f"n{start + 1}"] for start in range(0, 40, 2)])
    calls = [function_call("find_tools", {"query": "x"}, call_id=str(n)) for n in range(10)]
    unseen = [function_call(f"n{n}", {}, call_id=f"u{n}") for n in range(30, 33)]
    model = ScriptedModel([[*calls, *unseen], [assistant_message("done")]])
    await fruit_agent(model, tools=numbered, retriever=Saying(lambda: next(asked))).run_async("count")
    told = "\n".join(outputs(model))
    promised = [line[2:].partition(":")[0] for line in told.splitlines() if line.startswith("- ")]
    assert promised
    assert set(promised) <= set(shown(model)[1])
    assert "use those first, then ask again" in told
    assert "n30 exists, but its parameters were not shown to you, so it was not run. Too many" in told


async def test_what_cannot_be_read_of_a_session_is_no_obstacle() -> None:
    class Halting(SQLiteSession):
        async def get_items(self, limit: int | None = None, **more: Any) -> Any:
            if limit == 50:
                raise OSError("gone")
            return await super().get_items(limit, **more)

    session = Halting("s")
    model = calling(finding("fig"))
    await fruit_agent(model).run_async("a plum", session=session)
    assert shown(model)[0] == ["find_tools", "plum"]
    session.close()
