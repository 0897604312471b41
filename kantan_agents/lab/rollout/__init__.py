"""Gives a new prompt, model or rule set to a part of the users, under guard, and decides with evidence."""

from kantan_agents.support.extras import require_extra

require_extra("lab")

from kantan_agents.lab.rollout.arm import Arm
from kantan_agents.lab.rollout.record_score import record_score, record_score_async
from kantan_agents.lab.rollout.rollout import Rollout
from kantan_agents.lab.rollout.state.rows import RolloutChange, RolloutState
from kantan_agents.lab.rollout.steer import (
    history,
    promote,
    promote_async,
    rollouts,
    status,
    status_async,
    stop,
    stop_async,
)
from kantan_agents.lab.rollout.verdict.status import ArmFigures, GuardEvidence, MetricEvidence, RolloutStatus

__all__ = [
    "Arm",
    "ArmFigures",
    "GuardEvidence",
    "MetricEvidence",
    "Rollout",
    "RolloutChange",
    "RolloutState",
    "RolloutStatus",
    "history",
    "promote",
    "promote_async",
    "record_score",
    "record_score_async",
    "rollouts",
    "status",
    "status_async",
    "stop",
    "stop_async",
]
