"""What type checkers infer from the names of ``kantan_agents.lab``; it is checked and never run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import assert_type

from kantan_agents import Agent, Prompt, Rollout
from kantan_agents.lab import (
    Arm,
    ArmMetrics,
    GuardEvidence,
    MetricEvidence,
    RolloutChange,
    RolloutState,
    RolloutStatus,
    history,
    promote,
    promote_async,
    record_score,
    record_score_async,
    rollouts,
    status,
    status_async,
    stop,
    stop_async,
)


def decide(found: RolloutStatus) -> str | None:
    return "promote" if found.verdict == "promote" and found.arm == "v2" else None


def tenant(context: Mapping[str, Any]) -> object:
    return context.get("tenant")


def use(v1: Prompt, v2: Prompt) -> None:
    rollout = Rollout(
        {"v1": v1, "v2": v2, "v3": "A text.", "v4": Arm(v1, model="gpt-6.1-terra")},
        shares={"v1": 0.7, "v2": 0.1, "v3": 0.1, "v4": 0.1},
        unit=tenant,
        metric="rubric",
        metric_range=(0, 10),
        guards={"error": 0.02, "cost": "+20%"},
        prices={"gpt-6.1-terra": (1, 10)},
        on_verdict=decide,
        on_missing_unit="raise",
    )
    Rollout({"v1": v1}, unit="user.id", on_missing_unit="ignore")  # type: ignore[arg-type]
    agent = Agent("support", rollout)
    assert_type(agent, Agent[str])
    assert_type(rollout.arms, Mapping[str, Arm])
    assert_type(rollouts(), list[RolloutState])
    assert_type(promote("support", arm="v2", by="Mia"), RolloutState)
    assert_type(stop("support"), RolloutState)
    assert_type(history("support"), list[RolloutChange])
    found = status("support")
    assert_type(found, RolloutStatus)
    assert_type(found.arms, Sequence[ArmMetrics])
    assert_type(found.guards, Sequence[GuardEvidence])
    assert_type(found.metric, Sequence[MetricEvidence])
    assert_type(found.state.status == "running", bool)
    record_score("0" * 32, "thumb", 1)
    record_score({}, "thumb", True, comment="fine")


async def use_async(agent: Agent) -> None:
    context = await agent.run_async("Hi", {"user": {"id": 1}})
    await record_score_async(context, "thumb", 0.5)
    assert_type(await status_async("support"), RolloutStatus)
    assert_type(await promote_async("support"), RolloutState)
    assert_type(await stop_async("support"), RolloutState)
