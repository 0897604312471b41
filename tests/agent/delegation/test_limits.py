"""Limits on the depth and number of delegations, and on cycles."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from kantan_agents import Agent, task_tool
from tests.agent.delegation.cast import Cast, boss, definition, delegate, read, say, use


def chain(length: int) -> tuple[Cast, list[Any]]:
    """Return agents that each delegate to the next, and the model that plays them."""
    names = ["boss", *(f"level{number}" for number in range(1, length + 1))]
    scripts: dict[str, list[Any]] = {
        name: [delegate(after), say(f"{name} done")] for name, after in pairwise(names)
    }
    scripts[names[-1]] = [say(f"{names[-1]} done")]
    return Cast(**scripts), [definition(name) for name in names[1:]]


async def test_the_default_depth_is_three_delegations() -> None:
    cast, agents = chain(4)
    cast.parts["level3"].enqueue(say("unused"))
    await boss(cast, *agents).run_async("Go")
    assert "Task" in cast.visible_tools("level2")
    assert "Task" not in cast.visible_tools("level3")
    (result,) = cast.results("level3")
    assert "level4" in result or "Task" in result  # the model learns that the tool is missing
    assert cast.parts["level4"].first_call is None
    assert cast.results("boss") == ["level1 done"]


async def test_calling_the_hidden_tool_at_the_limit_returns_an_error() -> None:
    cast, agents = chain(2)
    await boss(cast, *agents, task={"max_depth": 1}).run_async("Go")
    assert "Task" not in cast.visible_tools("level1")
    assert "[E21]" in cast.results("level1")[0]


async def test_depth_zero_forbids_delegation() -> None:
    cast, agents = chain(1)
    await boss(cast, *agents, task={"max_depth": 0}).run_async("Go")
    assert "Task" not in cast.visible_tools("boss")


async def test_the_delegations_of_the_whole_tree_are_counted() -> None:
    step = [call for number in range(3) for call in delegate("helper", call_id=f"d{number}")]
    cast = Cast(
        boss=[delegate("lead", call_id="d9"), say("done")],
        lead=[step, say("led")],
        helper=[say("one"), say("two"), say("three")],
    )
    agents = [definition("lead"), definition("helper")]
    await boss(cast, *agents, task={"max_delegations": 3}).run_async("Go")
    results = cast.results("lead")
    assert sorted(results)[1:] == ["one", "two"]
    assert min(results) == (
        "[kantan-agents][E33] Cannot delegate to helper: all 3 allowed delegations have been used"
    )


async def test_each_outermost_run_counts_its_own_delegations() -> None:
    cast = Cast(
        boss=[delegate("helper"), say("done"), delegate("helper"), say("done")],
        helper=[say("one"), say("two")],
    )
    agent = boss(cast, definition("helper"), task={"max_delegations": 1})
    for answer in ("one", "two"):
        await agent.run_async("Go")
        assert cast.results("boss")[-1] == answer


@pytest.mark.parametrize("name", ["first", "First", "FIRST"])
async def test_an_agent_in_the_chain_is_not_delegated_to(name: str) -> None:
    cast = Cast(
        boss=[delegate("first"), say("done")],
        first=[delegate("second"), say("first done")],
        second=[delegate(name), say("second done")],
    )
    await boss(cast, definition("first"), definition("second")).run_async("Go")
    # No agent is left for the second to delegate to, so the tool is hidden.
    assert "Task" not in cast.visible_tools("second")
    assert cast.parts["first"].calls[1:]  # the run continued
    assert cast.results("boss") == ["first done"]


async def test_a_cycle_error_shows_the_chain() -> None:
    cast = Cast(
        boss=[delegate("first"), say("done")],
        first=[delegate("second"), say("first done")],
        second=[delegate("first"), say("second done")],
    )
    agents = [definition("first"), definition("second"), definition("third")]
    await boss(cast, *agents).run_async("Go")
    assert cast.results("second") == [
        "[kantan-agents][E34] Agent is already running: first (delegated by boss -> first -> second)"
    ]
    description = cast.parts["second"].calls[0].tools[-1].description
    assert "- third:" in description
    assert "- first:" not in description


async def test_the_outermost_agent_cannot_be_delegated_to() -> None:
    cast = Cast(boss=[delegate("Boss"), say("done")])
    await boss(cast, definition("boss"), definition("other")).run_async("Go")
    assert cast.results("boss")[0].startswith("[kantan-agents][E34]")


async def test_an_agent_may_work_twice_in_sequence() -> None:
    cast = Cast(
        boss=[delegate("helper"), delegate("helper", call_id="d2"), say("done")],
        helper=[say("one"), say("two")],
    )
    await boss(cast, definition("helper")).run_async("Go")
    assert cast.results("boss") == ["one", "two"]


async def test_a_run_inside_a_tool_of_a_child_starts_a_new_chain() -> None:
    inner_cast = Cast(inner=[delegate("helper"), say("inner done")], helper=[say("helped")])
    inner = Agent(
        "inner", "You are inner.", model=inner_cast, tools=[read, task_tool([definition("helper")])]
    )

    async def consult() -> str:
        """Run another agent directly."""
        return str((await inner.run_async("Go"))["result"].final_output)

    cast = Cast(boss=[delegate("helper"), say("done")], helper=[use("consult"), say("ok")])
    tools = [consult, task_tool([definition("helper")], max_depth=1)]
    await Agent("boss", "You are boss.", model=cast, tools=tools).run_async("Go")
    assert cast.results("helper") == ["inner done"]
