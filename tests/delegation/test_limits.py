"""How deep and how often: limits that the model is told, and that nobody waits for himself."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from kantan_agents import Agent
from kantan_agents.delegation import task_tool
from tests.delegation.cast import Cast, boss, definition, delegate, read, say, use

pytestmark = pytest.mark.anyio


def chain(length: int) -> tuple[Cast, list[Any]]:
    """Return agents of which each delegates to the next, and the model that plays them."""
    names = ["boss", *(f"level{number}" for number in range(1, length + 1))]
    scripts: dict[str, list[Any]] = {
        name: [delegate(after), say(f"{name} done")] for name, after in pairwise(names)
    }
    scripts[names[-1]] = [say(f"{names[-1]} done")]
    return Cast(**scripts), [definition(name) for name in names[1:]]


async def test_by_default_three_agents_wait_for_one_another_and_no_more() -> None:
    cast, agents = chain(4)
    cast.parts["level3"].enqueue(say("unused"))
    await boss(cast, *agents).run_async("Go")
    assert "Task" in cast.shown("level2")
    assert "Task" not in cast.shown("level3")
    (told,) = cast.told("level3")
    assert "level4" in told or "Task" in told  # the tool is not there, and the model hears it
    assert cast.parts["level4"].first_call is None
    assert cast.told("boss") == ["level1 done"]


async def test_the_limit_is_told_where_the_tool_is_called_nevertheless() -> None:
    cast, agents = chain(2)
    await boss(cast, *agents, task={"max_depth": 1}).run_async("Go")
    assert "Task" not in cast.shown("level1")
    assert "[E21]" in cast.told("level1")[0]


async def test_depth_zero_lets_nobody_delegate() -> None:
    cast, agents = chain(1)
    await boss(cast, *agents, task={"max_depth": 0}).run_async("Go")
    assert "Task" not in cast.shown("boss")


async def test_the_delegations_of_the_whole_tree_are_counted() -> None:
    step = [call for number in range(3) for call in delegate("helper", call_id=f"d{number}")]
    cast = Cast(
        boss=[delegate("lead", call_id="d9"), say("done")],
        lead=[step, say("led")],
        helper=[say("one"), say("two"), say("three")],
    )
    agents = [definition("lead"), definition("helper")]
    await boss(cast, *agents, task={"max_delegations": 3}).run_async("Go")
    told = cast.told("lead")
    assert sorted(told)[1:] == ["one", "two"]
    assert min(told) == (
        "[kantan-agents][E33] Cannot delegate to helper: 3 delegations were begun, and no more are allowed"
    )


async def test_the_next_run_begins_to_count_anew() -> None:
    cast = Cast(
        boss=[delegate("helper"), say("done"), delegate("helper"), say("done")],
        helper=[say("one"), say("two")],
    )
    agent = boss(cast, definition("helper"), task={"max_delegations": 1})
    for answer in ("one", "two"):
        await agent.run_async("Go")
        assert cast.told("boss")[-1] == answer


@pytest.mark.parametrize("name", ["first", "First", "FIRST"])
async def test_an_agent_that_waits_is_not_delegated_to(name: str) -> None:
    cast = Cast(
        boss=[delegate("first"), say("done")],
        first=[delegate("second"), say("first done")],
        second=[delegate(name), say("second done")],
    )
    await boss(cast, definition("first"), definition("second")).run_async("Go")
    # Nobody is left for the second to delegate to, so it is not shown the tool.
    assert "Task" not in cast.shown("second")
    assert cast.parts["first"].calls[1:]  # went on
    assert cast.told("boss") == ["first done"]


async def test_a_cycle_is_told_with_its_chain() -> None:
    cast = Cast(
        boss=[delegate("first"), say("done")],
        first=[delegate("second"), say("first done")],
        second=[delegate("first"), say("second done")],
    )
    agents = [definition("first"), definition("second"), definition("third")]
    await boss(cast, *agents).run_async("Go")
    assert cast.told("second") == [
        "[kantan-agents][E34] Agent is already running: first (delegated by boss -> first -> second)"
    ]
    description = cast.parts["second"].calls[0].tools[-1].description
    assert "- third:" in description
    assert "- first:" not in description


async def test_the_outermost_agent_is_no_agent_to_delegate_to() -> None:
    cast = Cast(boss=[delegate("Boss"), say("done")])
    await boss(cast, definition("boss"), definition("other")).run_async("Go")
    assert cast.told("boss")[0].startswith("[kantan-agents][E34]")


async def test_one_after_the_other_an_agent_may_work_twice() -> None:
    cast = Cast(
        boss=[delegate("helper"), delegate("helper", call_id="d2"), say("done")],
        helper=[say("one"), say("two")],
    )
    await boss(cast, definition("helper")).run_async("Go")
    assert cast.told("boss") == ["one", "two"]


async def test_a_run_inside_a_tool_of_a_child_begins_a_chain_of_its_own() -> None:
    inner_cast = Cast(inner=[delegate("helper"), say("inner done")], helper=[say("helped")])
    inner = Agent(
        "inner", "You are inner.", model=inner_cast, tools=[read, task_tool([definition("helper")])]
    )

    async def consult() -> str:
        """Run an agent of the program's own."""
        return str((await inner.run_async("Go"))["result"].final_output)

    cast = Cast(boss=[delegate("helper"), say("done")], helper=[use("consult"), say("ok")])
    tools = [consult, task_tool([definition("helper")], max_depth=1)]
    await Agent("boss", "You are boss.", model=cast, tools=tools).run_async("Go")
    assert cast.told("helper") == ["inner done"]
