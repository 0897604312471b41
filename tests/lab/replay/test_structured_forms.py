"""A replay asks for structured output as the recorded run did, whatever this process has learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kantan_llm import AsyncClientBundle

from kantan_agents import Agent, Recording, replay_async
from kantan_agents.agent.bridge import structured_requests
from kantan_agents.models.structured.requests import fetch
from kantan_agents.models.structured.requests.forms import FORCED_TOOL, NATIVE, PROMPT, TOOL, Form
from kantan_agents.models.structured.requests.memory import FORMS
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.lab.replay.kinds_of_runs import Out, tool
from tests.lab.replay.taping import Case, Tapes

OUT = '{"n": 1, "s": "x"}'


def forget() -> None:
    """Leave this process as a new one: it knows nothing about any provider."""
    FORMS._known.clear()


def nothing() -> None:
    """Leave this process as it is."""


def agent(model: AsyncClientBundle, **options: Any) -> Agent[Any]:
    return Agent("a", "Hi", model=model, output_type=Out, **options)


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("prepare", [nothing, forget], ids=["same process", "new process"])
@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize("with_tools", [False, True], ids=["alone", "beside tools"])
async def test_a_form_that_the_process_has_learned_is_the_recorded_one(
    tapes: Tapes, prepare: Callable[[], None], api: str, with_tools: bool, streamed: bool
) -> None:
    options = {"tools": [tool("t1")]} if with_tools else {}
    forget()
    recordings: list[Recording] = []
    # The first run learns that the native form is ignored, the second one knows it.
    with OfflineServer(["nonsense", OUT, OUT]) as server:
        # A local server beside tools learns nothing.
        model = server.bundle(api=api, provider="openrouter" if api == "chat" else None)
        for _ in range(2):
            await tapes.run(Case(agent(model, **options)), streamed=streamed)
            recordings.append(tapes.newest())
    modes = [
        [one.request.output and one.request.output.mode for one in it.root.model_calls] for it in recordings
    ]
    assert modes[1] == modes[0][1:] != ["native"]
    for recording in recordings:
        prepare()
        assert (await replay_async(recording, agent(model, **options))).output == Out(1, "x")


async def test_a_replay_teaches_the_process_nothing(tapes: Tapes) -> None:
    forget()
    with OfflineServer(["nonsense", OUT, OUT]) as server:
        model = server.bundle()
        await tapes.run(Case(agent(model)))
        recording = tapes.newest()
        forget()
        await replay_async(recording, agent(model))
        await agent(model).run_async("q")
        assert "format" in str(server.requests[-1].body.get("text"))  # native, as in any new process


async def test_every_form_of_a_local_server_is_replayed(tapes: Tapes) -> None:
    forget()
    with OfflineServer([*4 * ["nonsense"], OUT]) as server:
        model = server.bundle(api="chat")
        await tapes.run(Case(agent(model)))
        assert len(server.requests) == 5
    recording = tapes.newest()
    forget()
    assert (await replay_async(recording, agent(model))).output == Out(1, "x")


async def test_an_example_after_a_hand_off_is_replayed(tapes: Tapes) -> None:
    # The example is then in the instructions, as the last item is a result.
    forget()
    hand_off = ScriptedToolCall("transfer_to_a", {})
    with OfflineServer([hand_off, *4 * ["nonsense"], OUT, hand_off, OUT]) as server:
        model = server.bundle(api="chat")
        first = Agent("first", "Hand off.", model=model, handoffs=[agent(model)])
        for _ in range(2):
            await tapes.run(Case(first))
        assert len(server.requests) == 8  # the second run has begun with the example
    recording = tapes.newest()
    forget()
    assert (await replay_async(recording, first)).output == Out(1, "x")


async def test_a_run_of_a_version_that_began_with_another_form_is_replayed(
    tapes: Tapes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def known_before(*_: Any) -> tuple[Form, ...]:
        return NATIVE, FORCED_TOOL, TOOL, PROMPT

    forget()
    with OfflineServer(["nonsense", OUT]) as server, monkeypatch.context() as before:
        before.setattr(structured_requests, "known_forms", known_before)
        before.setattr(fetch, "known_forms", known_before)
        model = server.bundle(api="chat")
        await tapes.run(Case(agent(model, tools=[tool("t1")])))
    recording = tapes.newest()
    modes = [one.request.output and one.request.output.mode for one in recording.root.model_calls]
    assert modes == ["native", "tool"]
    forget()
    assert (await replay_async(recording, agent(model, tools=[tool("t1")]))).output == Out(1, "x")
