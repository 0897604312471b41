"""The conversation before a run: follow-ups, sessions, and many tools requested in one step."""

from __future__ import annotations

from typing import Any

import pytest
from agents import ModelSettings, RunConfig, SQLiteSession

from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.tools.retrieval.conftest import Saying, calling, finding, fruit_agent, outputs, shown, tool

CALLED: list[Any] = [
    {"role": "user", "content": "an apple"},
    {"type": "function_call", "call_id": "c", "name": "quince", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "which?"},
    {"role": "assistant", "content": "Shall I?"},
]


async def test_earlier_calls_are_shown_again_and_short_answers_use_the_text_before() -> None:
    model = calling()
    await fruit_agent(model).run_async([*CALLED, {"role": "user", "content": "yes please"}])
    assert shown(model) == [["find_tools", "quince", "apple"]]


async def test_an_earlier_call_denied_meanwhile_is_not_shown_again() -> None:
    model = calling()
    context = {"tool_rules": {"deny": ["quince"]}}
    await fruit_agent(model).run_async([*CALLED, {"role": "user", "content": "a fig"}], context)
    assert shown(model) == [["find_tools", "fig"]]


async def test_a_session_is_read() -> None:
    session = SQLiteSession("s")
    model = ScriptedModel([[function_call("fig", {}, call_id="f")], *[[assistant_message("Shall I?")]] * 2])
    agent = fruit_agent(model)
    await agent.run_async("a plum", session=session)
    await agent.run_async("yes please", session=session)
    assert shown(model)[-1] == ["find_tools", "fig", "plum"]
    session.close()


async def test_the_history_of_the_context_is_read() -> None:
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


async def test_every_tool_that_find_tools_promises_is_shown() -> None:
    numbered = [tool(f"n{place}", "Counts.") for place in range(40)]
    asked = iter([[f"n{start}", f"n{start + 1}"] for start in range(0, 40, 2)])
    calls = [function_call("find_tools", {"query": "x"}, call_id=str(n)) for n in range(10)]
    unseen = [function_call(f"n{n}", {}, call_id=f"u{n}") for n in range(30, 33)]
    model = ScriptedModel([[*calls, *unseen], [assistant_message("done")]])
    await fruit_agent(model, tools=numbered, retriever=Saying(lambda: next(asked))).run_async("count")
    answers = "\n".join(outputs(model))
    promised = [line[2:].partition(":")[0] for line in answers.splitlines() if line.startswith("- ")]
    assert promised
    assert set(promised) <= set(shown(model)[1])
    assert "use those first, then ask again" in answers
    assert "n30 exists, but its parameters were not shown to you, so it was not run. Too many" in answers


async def test_a_session_that_cannot_be_read_is_ignored() -> None:
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
