"""Every kind of run replays to the same requests, output and events."""

from __future__ import annotations

import pytest
from agents import RunConfig

from kantan_agents import replay_async
from kantan_agents.errors import InvalidOptionError
from tests.lab.replay.kinds_of_runs import KINDS
from tests.lab.replay.taping import Tapes


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_replayed_run_is_the_recorded_run(tapes: Tapes, kind: str, streamed: bool) -> None:
    taped = await tapes.record(KINDS[kind](True), streamed=streamed)
    replayed = await tapes.replays(taped, KINDS[kind](False).agent)
    result = None if taped.context is None else taped.context["result"]
    assert replayed.output == getattr(result, "final_output", None)
    assert (replayed.error is None) == (taped.context is not None)


@pytest.mark.parametrize("kind", ["delegation", "handoff_to_sdk_agent", "agent_as_tool", "model_fails"])
async def test_a_replay_leaves_no_trace(tapes: Tapes, kind: str) -> None:
    taped = await tapes.record(KINDS[kind](True))
    await replay_async(taped.recording, KINDS[kind](False).agent)
    tapes.recorder.force_flush()
    assert [one.trace_id for one in tapes.store.traces()] == [taped.recording.trace_id]


async def test_options_of_the_caller_are_used_and_checked(tapes: Tapes) -> None:
    taped = await tapes.record(KINDS["plain"](True))
    agent = KINDS["plain"](False).agent
    for config in (RunConfig(workflow_name="mine"), {"workflow_name": "mine"}):
        assert (await replay_async(taped.recording, agent, run_config=config)).output == "Yes"
    with pytest.raises(InvalidOptionError, match=r"E75.*run_config"):
        await replay_async(taped.recording, agent, run_config="none")
