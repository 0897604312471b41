"""A recorded run of an arm is replayed with that arm, whatever the shares are now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent, Recording, TraceStore, record_traces, replay_async
from kantan_agents.lab import Arm, Change, Cohort, replay_cohort_async, stop
from kantan_agents.testing import ScriptedModel, ScriptedToolCall
from tests.lab.rollout.test_runs import unit_of
from tests.lab.rollout.trial import V1, V2, rollout, shared_of, support


def refund() -> str:
    """Refund."""
    return "refunded"


def under_rollout(path: Path) -> Agent[Any]:
    arms = {
        "v1": V1,
        "v2": V2,
        "v3": Arm(V1, model=ScriptedModel(lambda _: "large")),
        "v4": Arm(V2, tool_rules={"deny": ["refund"]}),
    }

    def answer(call: Any) -> Any:
        return "done" if "call_id" in str(call.input) else ScriptedToolCall("refund", {})

    choice = rollout(path, arms, ramp=(0.75, 1))
    return support(choice, model=ScriptedModel(answer), tools=[refund])


@pytest.mark.parametrize("arm", ["v1", "v2", "v3", "v4"])
async def test_a_run_of_each_arm_replays_after_the_rollout(tmp_path: Path, arm: str) -> None:
    path = tmp_path / "traces.db"
    record_traces(path)
    agent = under_rollout(path)
    await agent.run_async("Hi", unit_of(agent, arm))
    state = stop("support", path)
    shared_of(agent).accept(state)
    store = TraceStore(path)
    recording = Recording.from_trace(store, store.traces()[0].trace_id)
    saved = tmp_path / "run.json"
    recording.save(saved)
    for one in (recording, Recording.load(saved)):
        assert one.root.arm == arm
        replayed = await replay_async(one, agent)
        assert replayed.output == ("large" if arm == "v3" else "done")
    assert len(store.traces()) == 1


async def test_a_cohort_of_both_arms_is_run_again_with_a_change(tmp_path: Path) -> None:
    path = tmp_path / "traces.db"
    record_traces(path)
    agent = under_rollout(path)
    for arm in ("v1", "v2"):
        await agent.run_async("Hi", unit_of(agent, arm))
    store = TraceStore(path)
    made = await replay_cohort_async(
        Cohort.of(store, [one.trace_id for one in store.traces()]),
        agent,
        Change.settings(temperature=0.5),
        name="warmer",
    )
    assert [run.status for run in made.runs] == ["same", "same"]
