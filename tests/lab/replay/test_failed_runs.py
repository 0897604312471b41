"""A run that had failed is the same only if it fails at the same place, with the same error."""

from __future__ import annotations

from typing import Any

import pytest
from agents import UserError, function_tool

from kantan_agents import Agent, Middleware, replay_async
from kantan_agents.errors import ReplayDifferenceError
from kantan_agents.testing import ScriptedToolCall as Call
from tests.lab.replay.kinds_of_runs import scripted
from tests.lab.replay.taping import Case, Taped, Tapes


class Place:
    """Its representation has its address, which differs in each process."""


def look(query: str) -> str:
    """Look something up."""
    raise RuntimeError(f"nothing at {Place()!r} for {query}")


def agent(live: bool, **options: Any) -> Agent[Any]:
    model = scripted(live, Call("look", {"query": "x"}))
    tool = function_tool(look, failure_error_function=None)
    return Agent("a", "Hi", model=model, tools=[tool], **options)


class Failing(Middleware):
    """Fails with the class of the recorded error, before or instead of an answer of the model.

    Args:
        message: The message.
        after_calls: Number of model calls that are made before.
    """

    def __init__(self, message: str, after_calls: int) -> None:
        self._message = message
        self._left = after_calls

    async def model_call(self, call: Any, call_next: Any) -> Any:
        if not self._left:
            raise UserError(self._message)
        self._left -= 1
        return await call_next(call)

    async def tool_call(self, call: Any, call_next: Any) -> Any:
        raise UserError(self._message)


async def failed(tapes: Tapes) -> Taped:
    taped = await tapes.record(Case(agent(live=True)))
    assert taped.recording.root.error is not None
    return taped


async def test_the_same_error_is_no_difference(tapes: Tapes) -> None:
    taped = await failed(tapes)
    assert isinstance((await replay_async(taped.recording, agent(live=False))).error, UserError)


@pytest.mark.parametrize("after_calls", [0, 1])
async def test_another_message_is_a_difference(tapes: Tapes, after_calls: int) -> None:
    taped = await failed(tapes)
    broken = agent(live=False, middleware=[Failing("a mistake", after_calls)])
    with pytest.raises(ReplayDifferenceError, match=r"at the end: error changed") as caught:
        await replay_async(taped.recording, broken)
    assert "+a mistake" in str(caught.value)


async def test_the_same_error_before_all_model_calls_is_a_difference(tapes: Tapes) -> None:
    taped = await failed(tapes)
    error = taped.recording.root.error
    assert error is not None
    broken = agent(live=False, middleware=[Failing(error.message, 0)])
    with pytest.raises(ReplayDifferenceError, match=r"model call 1 of 'a': calls removed"):
        await replay_async(taped.recording, broken)
    assert (await replay_async(taped.recording, broken, ignore="calls")).error is not None


async def test_an_error_that_may_differ_does_not_hide_missing_calls(tapes: Tapes) -> None:
    taped = await failed(tapes)
    broken = agent(live=False, middleware=[Failing("a mistake", 0)])
    with pytest.raises(ReplayDifferenceError, match="calls removed"):
        await replay_async(taped.recording, broken, ignore="error")
    assert (await replay_async(taped.recording, broken, ignore=("error", "calls"))).error is not None
