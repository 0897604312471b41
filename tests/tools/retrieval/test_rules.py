"""The tool rules apply to everything that retrieval finds."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kantan_agents import Middleware
from kantan_agents.errors import ToolNotAllowedError
from tests.tools.retrieval.conftest import FRUIT, Saying, calling, finding, fruit_agent, outputs, shown, tool
from tests.tools.retrieval.servers import Server


def rules(**tool_rules: Any) -> dict[str, Any]:
    return {"tool_rules": tool_rules}


async def test_a_denied_tool_is_replaced_by_the_next_match() -> None:
    retriever = Saying(list(FRUIT))
    model = calling()
    await fruit_agent(model, retriever=retriever).run_async("x", rules(deny=["apple", "plum"]))
    assert shown(model) == [["find_tools", "pear", "cherry"]]


async def test_the_search_continues_until_enough_tools_are_permitted() -> None:
    numbered = [tool(f"n{place}") for place in range(300)]
    retriever = Saying([each.name for each in numbered])
    model = calling()
    await fruit_agent(model, tools=numbered, retriever=retriever).run_async("x", rules(allow=["n7", "n299"]))
    assert shown(model) == [["find_tools", "n7", "n299"]]
    assert [limit for _, limit in retriever.asked] == [4, 300]


async def test_a_denied_tool_is_not_found_and_not_shown_after_a_call() -> None:
    model = calling(finding("fig"), "fig", "fig")
    await fruit_agent(model).run_async("an apple", rules(deny=["fig"]))
    assert outputs(model)[0].startswith("No tool matches that.")
    assert "[E8] Tool is not allowed: fig" in outputs(model)[1]
    assert "[E8] Tool is not allowed: fig" in outputs(model)[2]
    assert all("fig" not in names for names in shown(model))


async def test_a_denied_tool_in_always_is_not_shown() -> None:
    model = calling()
    await fruit_agent(model, always=["fig"]).run_async("an apple", rules(deny=["fig"]))
    assert shown(model) == [["find_tools", "apple"]]


async def test_the_policy_may_raise() -> None:
    agent = fruit_agent(calling("fig"), on_rule_violation="raise")
    with pytest.raises(ToolNotAllowedError):
        await agent.run_async("an apple", rules(deny=["fig"]))


async def test_a_rule_added_during_the_run_applies_to_tools_in_view() -> None:
    model = calling(finding("fig"), "fig")
    context = rules(deny=["melon"])
    tools = [tool("fig", "Peels a fig."), tool("apple"), tool("pear"), tool("melon")]

    class DenyLater(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            answer = await call_next(call)
            if model.last_call is not None and len(model.calls) == 2:
                context["tool_rules"] = {"deny": ["fig"]}
            return answer

    agent = fruit_agent(model, tools=tools, middleware=[DenyLater()])
    await agent.run_async("an apple", context)
    assert "fig" in shown(model)[1]
    assert "[E8] Tool is not allowed: fig" in outputs(model)[-1]
    assert "fig" not in shown(model)[2]


async def test_find_tools_needs_no_allow_entry_but_can_be_denied() -> None:
    model = calling(finding("pear"))
    await fruit_agent(model).run_async("an apple", rules(allow=["apple", "pear", "fig"]))
    assert shown(model) == [["find_tools", "apple"], ["find_tools", "apple", "pear"]]
    model = calling()
    await fruit_agent(model).run_async("an apple", rules(deny=["find_tools"]))
    assert shown(model) == [["apple"]]


@pytest.mark.parametrize(
    ("allowed", "seen"), [([], []), (["fig"], ["fig"]), (["melon", "pear"], ["pear", "melon"])]
)
async def test_all_permitted_tools_are_shown_if_they_are_few(allowed: list[str], seen: list[str]) -> None:
    model = calling()
    agent = fruit_agent(model)
    await agent.run_async("please do it", rules(allow=[*allowed, "nothing"]))
    assert shown(model) == [seen]
    assert (await agent.select_tools("x", rules(allow=[*allowed, "nothing"]))).shown == seen


async def test_tools_in_always_come_before_the_few_permitted_ones() -> None:
    model = calling()
    agent = fruit_agent(model, always=["melon"])
    context = rules(allow=["pear", "melon"])
    await agent.run_async("please do it", context)
    assert shown(model) == [["melon", "pear"]]
    assert (await agent.select_tools("x", rules(allow=["pear", "melon"]))).shown == ["melon", "pear"]


@pytest.mark.parametrize("text", ["an apple", "a fig"])
async def test_a_server_cannot_take_the_name_of_a_tool_that_is_not_shown(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = calling("fig", "fig")
    agent = fruit_agent(
        model, mcp_servers=[Server("impostor", ["fig", "find_tools", "kiwi"])], always=["kiwi"]
    )
    with caplog.at_level(logging.WARNING, "kantan_agents.retrieval"):
        await agent.run_async(text)
    assert outputs(model)[-1] == "fig done"
    assert "impostor" not in str(outputs(model))
    assert shown(model)[0] == ["find_tools", "kiwi", text.split()[1]]
    left_out = [getattr(record, "tool", None) for record in caplog.records]
    assert left_out == ["fig", "find_tools"]


async def test_the_answer_to_an_unknown_tool_name_lists_find_tools() -> None:
    model = calling("stone")
    await fruit_agent(model).run_async("an apple")
    assert "find_tools" in outputs(model)[0]
