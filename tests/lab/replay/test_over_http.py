"""Runs whose models answer over HTTP; in the replay, the server is closed."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from kantan_agents import Agent
from kantan_agents.testing import OfflineServer, Reply
from kantan_agents.testing import ScriptedToolCall as Call
from tests.lab.replay.kinds_of_runs import tool
from tests.lab.replay.taping import Case, Tapes


@attrs.define
class Answer:
    n: int


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a_run_over_both_apis(tapes: Tapes, api: Any, streamed: bool) -> None:
    with OfflineServer([Call("t1", {"x": "q"}), '{"n": 3}']) as server:
        bundle = server.bundle("m", api=api)

        def agent() -> Agent[Any]:
            return Agent("a", "Hi", model=bundle, tools=[tool("t1")], output_type=Answer)

        taped = await tapes.record(Case(agent()), streamed=streamed)
        sent = len(server.requests)
    replayed = await tapes.replays(taped, agent())
    assert replayed.output == Answer(3)
    assert len(server.requests) == sent == 2


@pytest.mark.parametrize("output_type", [None, Answer], ids=["text", "structured"])
@pytest.mark.parametrize("name", ["gpt-4o-mini", "claude-sonnet-4-5", "gemini-2.5-flash", None])
async def test_a_named_model_needs_no_key_in_a_replay(
    tapes: Tapes, monkeypatch: pytest.MonkeyPatch, name: str | None, output_type: Any
) -> None:
    with OfflineServer(['{"n": 1}']) as server, monkeypatch.context() as environment:
        for key, value in server.environment().items():
            environment.setenv(key, value)
        taped = await tapes.record(Case(Agent("a", "Hi", model=name, output_type=output_type)))
        assert len(server.requests) == 1
    replayed = await tapes.replays(taped, Agent("a", "Hi", model=name, output_type=output_type))
    assert replayed.output == ('{"n": 1}' if output_type is None else Answer(1))


async def test_a_server_that_rejects_a_request(tapes: Tapes) -> None:
    with OfflineServer([Reply("no such thing", status=400)]) as server:
        bundle = server.bundle("m")
        taped = await tapes.record(Case(Agent("a", "Hi", model=bundle)))
    replayed = await tapes.replays(taped, Agent("a", "Hi", model=bundle))
    assert type(replayed.error).__name__ == "BadRequestError"
    assert taped.recording.root.error is not None
    assert taped.recording.root.error.status == 400
