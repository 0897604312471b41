"""A handler for some classes of events: it receives these only, and nothing else is made for it alone."""

from __future__ import annotations

from kantan_agents import Agent, Event
from kantan_agents.core.events import ModelCallFinished, RunFinished, StageEntered
from kantan_agents.core.events.observers import OnlyKinds
from kantan_agents.testing import ScriptedModel


def agent() -> Agent:
    return Agent("a", "b", model=ScriptedModel(lambda _call: "x"))


async def test_a_handler_of_some_classes_receives_these_and_nothing_else_is_made() -> None:
    seen: list[Event] = []
    made = agent()
    with made.subscribe(OnlyKinds(seen.append, frozenset({ModelCallFinished, RunFinished}))):
        await made.run_async("hi")
    assert [type(event) for event in seen] == [ModelCallFinished, RunFinished]
    assert [event.sequence for event in seen] == [1, 2]


async def test_beside_a_handler_of_all_events_both_receive_what_they_want() -> None:
    some: list[Event] = []
    everything: list[Event] = []
    made = agent()
    with (
        made.subscribe(OnlyKinds(some.append, frozenset({RunFinished}))),
        made.subscribe(everything.append),
    ):
        await made.run_async("hi")
    assert [type(event) for event in some] == [RunFinished]
    assert StageEntered in {type(event) for event in everything}
    assert some[0] is everything[-1]
