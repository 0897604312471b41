"""The tools that a model is shown in each turn, with the real runner."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from agents import Runner, RunState, function_tool

from kantan_agents import Agent, ToolRetrieval
from kantan_agents.errors import InvalidOptionError, UnknownRetrievedToolError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.tools.retrieval.conftest import (
    FRUIT,
    Saying,
    calling,
    finding,
    fruit_agent,
    fruit_tools,
    outputs,
    shown,
    tool,
)


async def test_only_matching_tools_are_shown_in_the_order_of_registration() -> None:
    model = calling()
    await fruit_agent(model, always=["fig"]).run_async("I want a plum, or an apple")
    assert shown(model) == [["find_tools", "fig", "apple", "plum"]]


async def test_the_newest_text_of_the_user_is_the_query() -> None:
    model = calling()
    items = [
        {"role": "user", "content": "an apple"},
        {"role": "assistant", "content": "a melon"},
        {"role": "user", "content": [{"type": "input_text", "text": "a pear"}]},
    ]
    await fruit_agent(model).run_async(items)
    assert shown(model) == [["find_tools", "pear"]]


async def test_requested_tools_are_appended_from_the_next_turn_on() -> None:
    model = calling(finding("lemon"), "lemon")
    await fruit_agent(model).run_async("an apple")
    assert shown(model) == [
        ["find_tools", "apple"],
        ["find_tools", "apple", "lemon"],
        ["find_tools", "apple", "lemon"],
    ]
    assert outputs(model) == [
        "These can be called from now on:\n- lemon: Peels a lemon.",
        "lemon done",
    ]


async def test_a_tool_that_was_not_shown_is_not_run_but_shown_next_turn() -> None:
    model = calling("fig", "fig")
    await fruit_agent(model).run_async("an apple")
    assert shown(model)[1] == ["find_tools", "apple", "fig"]
    assert outputs(model)[0].startswith("The tool fig exists, but its parameters were not shown to you")
    assert outputs(model)[1] == "fig done"


async def test_a_call_of_an_unknown_tool_is_still_an_error() -> None:
    model = calling("stone")
    await fruit_agent(model).run_async("an apple")
    assert "[E21]" in outputs(model)[0]
    assert shown(model)[1] == ["find_tools", "apple"]


async def test_called_tools_are_part_of_the_next_query() -> None:
    tools = [*fruit_tools(), tool("wash_apple", "Washes."), tool("sell_apple", "Sells.")]
    retriever: Saying = Saying(lambda: ["fig"] if len(retriever.asked) == 1 else ["wash_apple", "fig"])
    model = calling("fig")
    await fruit_agent(model, tools=tools, retriever=retriever).run_async("fruit")
    assert shown(model) == [["find_tools", "fig"], ["find_tools", "fig", "wash_apple"]]
    assert [query for query, _ in retriever.asked] == ["fruit", "fruit\nfig"]


async def test_there_is_no_new_search_without_a_new_call() -> None:
    retriever = Saying(["fig"])
    model = calling(finding("x"), "no_such_tool")
    await fruit_agent(model, retriever=retriever).run_async("fruit")
    assert [query for query, _ in retriever.asked] == ["fruit", "x"]


async def test_the_view_is_bounded_and_called_tools_stay() -> None:
    numbered = [tool(f"n{place}", "Counts.") for place in range(40)]
    asked = iter([[f"n{start}", f"n{start + 1}"] for start in range(0, 40, 2)])
    model = calling("n0", *[finding("more")] * 6)
    await fruit_agent(model, tools=numbered, retriever=Saying(lambda: next(asked))).run_async("count")
    last = shown(model)[-1]
    assert len(last) == 1 + 2 * 4
    assert "n0" in last
    assert "n1" not in last


@pytest.mark.parametrize("count", [0, 1, 2])
async def test_few_tools_are_all_shown(count: int) -> None:
    model = calling()
    agent = fruit_agent(model, tools=fruit_tools()[:count], retriever=Saying(None))
    await agent.run_async("a melon")
    assert shown(model) == [list(FRUIT[:count])]


@pytest.mark.parametrize("text", ["", "   ", "?!", "zebra"])
async def test_without_matches_the_model_still_has_find_tools(text: str) -> None:
    model = calling(finding("zebra"), ("find_tools", {}), ("find_tools", {"query": 1}))
    await fruit_agent(model).run_async(text)
    assert shown(model)[0] == ["find_tools"]
    assert outputs(model)[0].startswith("No tool matches that.")
    assert outputs(model)[1:] == ['Give a query, such as {"query": "send an e-mail"}.'] * 2


async def test_a_megabyte_of_input_is_cut() -> None:
    retriever = Saying(["fig"])
    await fruit_agent(calling(), retriever=retriever).run_async("a" * 1_000_000 + " melon")
    assert len(retriever.asked[0][0]) < 5_000
    assert retriever.asked[0][0].endswith(" melon")


async def test_concurrent_runs_do_not_mix() -> None:
    models: dict[str, list[list[str]]] = {}

    def answer(call: Any) -> Any:
        text = next(item["content"] for item in call.input if item.get("role") == "user")
        models.setdefault(text, []).append([each.name for each in call.tools])
        if len(call.input) == 1:
            return [function_call("find_tools", {"query": "quince"}, call_id="c")]
        return [assistant_message("done")]

    from kantan_agents.testing import ModelStep

    agent = fruit_agent(ScriptedModel([ModelStep.respond(answer)] * 8))
    async with anyio.create_task_group() as group:
        for fruit in FRUIT[:4]:
            group.start_soon(agent.run_async, f"one {fruit}")
    for fruit in FRUIT[:4]:
        assert models[f"one {fruit}"] == [
            ["find_tools", fruit],
            ["find_tools", fruit, "quince"],
        ]


async def test_one_retrieval_serves_several_agents() -> None:
    retrieval = ToolRetrieval(1)
    second = calling()
    animals = [tool("feed_cat", "Feeds the cat."), tool("feed_dog", "Feeds the dog.")]
    other = Agent("other", "x", tools=animals, model=second, tool_retrieval=retrieval)
    first = ScriptedModel([[function_call("transfer_to_other", {}, call_id="h")], [assistant_message("x")]])
    agent = Agent("a", "x", tools=fruit_tools(), model=first, tool_retrieval=retrieval, handoffs=[other])
    await agent.run_async("an apple for the dog")
    assert shown(first) == [["find_tools", "apple"]]
    assert shown(second) == [["find_tools", "feed_dog"]]


async def test_an_agent_as_tool_chooses_by_its_arguments() -> None:
    inner_model = calling("melon")
    inner = fruit_agent(inner_model)
    outer_model = ScriptedModel(
        [[function_call("ask", {"input": "the quince"}, call_id="a")], [assistant_message("done")]]
    )
    outer = Agent("outer", "x", tools=[inner.sdk_agent.as_tool("ask", "Ask.")], model=outer_model)
    await outer.run_async("an apple")
    assert shown(inner_model) == [["find_tools", "quince"], ["find_tools", "quince", "melon"]]


async def test_under_the_sdks_own_runner_the_model_uses_find_tools() -> None:
    model = calling(finding("lemon"), "lemon")
    result = await Runner.run(fruit_agent(model).sdk_agent, "an apple")
    assert result.final_output == "done"
    # SDK 0.20 sets the input only after the first turn.
    assert shown(model)[0] in (["find_tools"], ["find_tools", "apple"])
    assert "apple" in shown(model)[1]
    assert "lemon" in shown(model)[1]


async def test_a_streamed_run_makes_the_same_choice() -> None:
    model = calling("apple")
    async with fruit_agent(model).stream("an apple") as run:
        async for _ in run:
            pass
    assert shown(model) == [["find_tools", "apple"]] * 2


@pytest.mark.parametrize("stored", [True, False])
async def test_a_call_that_waited_for_an_approval_finds_its_tool(stored: bool) -> None:
    careful = fruit_tools()
    for each in careful:
        each.needs_approval = True
    model = calling("apple")
    agent = fruit_agent(model, tools=careful)
    paused = (await agent.run_async("an apple"))["result"]
    state = paused.to_state()
    if stored:
        state = await RunState.from_json(agent.sdk_agent, state.to_json())
    state.approve(state.get_interruptions()[0])
    context = await agent.run_async(state)
    assert context["result"].final_output == "done"
    assert outputs(model) == ["apple done"]
    assert shown(model)[-1][:2] == ["find_tools", "apple"]


async def test_a_disabled_tool_is_replaced_by_the_next_match() -> None:
    tools = [tool(f"way_{place}", "Peels an apple.") for place in "qwxz"]
    model = calling()
    agent = fruit_agent(model, tools=tools)
    tools[0].is_enabled = False
    await agent.run_async("apple")
    assert shown(model) == [["find_tools", "way_w", "way_x"]]


async def test_tools_that_are_not_plain_are_always_shown() -> None:
    @function_tool(is_enabled=lambda _context, _agent: True)
    def sometimes() -> str:
        """Sometimes."""
        return ""

    model = calling()
    await fruit_agent(model, tools=[*fruit_tools(), sometimes]).run_async("a fig")
    assert shown(model) == [["find_tools", "sometimes", "fig"]]


async def test_select_tools_returns_what_would_be_shown() -> None:
    agent = fruit_agent(calling(), always=["pear"])
    selection = await agent.select_tools("a fig and an apple", {"tool_rules": {"deny": ["apple"]}})
    assert selection.shown == ["pear", "fig"]
    assert [match.name for match in selection.matches] == ["fig"]
    assert selection.failed is None
    assert (await fruit_agent(calling(), tools=fruit_tools()[:2]).select_tools("x")).shown == [
        "apple",
        "pear",
    ]
    with pytest.raises(InvalidOptionError, match="this agent has none"):
        await Agent("a", "x").select_tools("x")


def test_all_unknown_names_are_reported_with_the_nearest() -> None:
    with pytest.raises(UnknownRetrievedToolError) as caught:
        fruit_agent(None, always=["appel", "zzz"])
    assert "'appel' (did you mean apple" in str(caught.value)
    assert "'zzz' (it must be one of its plain function tools)" in str(caught.value)
    assert len(caught.value.problems) == 2


def test_a_tool_with_the_name_of_find_tools_is_an_error() -> None:
    with pytest.raises(InvalidOptionError, match="tool named find_tools of its own"):
        fruit_agent(None, tools=[*fruit_tools(), tool("find_tools")])
    fruit_agent(None, tools=[*fruit_tools(), tool("find_tools")], find_tools="more_tools")


async def test_find_tools_can_be_left_out() -> None:
    model = calling()
    await fruit_agent(model, find_tools=None).run_async("a fig")
    assert shown(model) == [["fig"]]


@pytest.mark.parametrize(
    "options",
    [
        {"top_n": 0},
        {"top_n": -1},
        {"top_n": True},
        {"top_n": 2.0},
        {"always": "fig"},
        {"always": [1]},
        {"retriever": 1},
        {"retriever": Saying},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"index_timeout": "1"},
        {"find_tools": ""},
        {"find_tools": "two words"},
        {"provider_search": "auto"},
    ],
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(options))):
        ToolRetrieval(**options)


def test_the_option_must_be_a_tool_retrieval() -> None:
    with pytest.raises(InvalidOptionError, match="tool_retrieval"):
        Agent("a", "x", tool_retrieval=8)  # type: ignore[arg-type]


def test_the_index_has_a_repr() -> None:
    assert repr(ToolRetrieval(3, always=["a"])).startswith("ToolRetrieval(top_n=3, retriever=BM25Retriever(")
