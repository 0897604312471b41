"""Runs that wait for a person: until then, and from then on."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents import Agent, Prompt
from kantan_agents.middleware import Approve
from kantan_agents.testing import ScriptedToolCall as Call
from tests.lab.replay.kinds_of_runs import scripted, tool
from tests.lab.replay.taping import RAN, Case, Taped, Tapes


def paying(live: bool) -> Agent[Any]:
    model = scripted(live, Call("pay", {"x": "1"}), "done")
    prompt = Prompt("p", "1", "Hi {{ $ctx.user }}")
    return Agent("a", prompt, model=model, tools=[tool("pay")], middleware=[Approve("pay")])


async def paused(tapes: Tapes) -> tuple[Agent[Any], Taped]:
    agent = paying(live=True)
    taped = await tapes.record(Case(agent, context={"user": "Aiko"}))
    assert taped.context is not None
    assert taped.context["result"].interruptions
    return agent, taped


async def test_a_run_that_waits_for_a_person_waits_again(tapes: Tapes) -> None:
    _, taped = await paused(tapes)
    replayed = await tapes.replays(taped, paying(live=False))
    assert replayed.context is not None
    assert [item.name for item in replayed.context["result"].interruptions] == ["pay"]


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_a_run_goes_on_as_the_person_decided(tapes: Tapes, decision: str, streamed: bool) -> None:
    agent, taped = await paused(tapes)
    assert taped.context is not None
    state = taped.context["result"].to_state()
    for item in taped.context["result"].interruptions:
        getattr(state, decision)(item)
    ran = len(RAN)
    resumed = await tapes.record(Case(agent, state, taped.context), streamed=streamed)
    assert RAN[ran:] == (["pay"] if decision == "approve" else [])
    assert resumed.recording.root.state is not None
    assert (await tapes.replays(resumed, paying(live=False))).output == "done"
