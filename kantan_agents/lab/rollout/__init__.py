"""Gives a new prompt, model or rule set to a share of the users, with guards, and decides with evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.extras import require_extra
from kantan_agents.support.package_names import lazy_names

require_extra("lab")

if TYPE_CHECKING:
    from kantan_agents.lab.rollout.arm import Arm
    from kantan_agents.lab.rollout.rollout import Rollout
    from kantan_agents.lab.rollout.scoring import record_score, record_score_async
    from kantan_agents.lab.rollout.state.rows import RolloutChange, RolloutState
    from kantan_agents.lab.rollout.steer import promote, promote_async, status, status_async, stop, stop_async
    from kantan_agents.lab.rollout.stored_rollouts import history, rollouts
    from kantan_agents.lab.rollout.verdict.status import (
        ArmMetrics,
        GuardEvidence,
        MetricEvidence,
        RolloutStatus,
    )

__all__ = [
    "Arm",
    "ArmMetrics",
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.lab.rollout.arm": ("Arm",),
        "kantan_agents.lab.rollout.scoring": ("record_score", "record_score_async"),
        "kantan_agents.lab.rollout.rollout": ("Rollout",),
        "kantan_agents.lab.rollout.state.rows": ("RolloutChange", "RolloutState"),
        "kantan_agents.lab.rollout.steer": (
            "promote",
            "promote_async",
            "status",
            "status_async",
            "stop",
            "stop_async",
        ),
        "kantan_agents.lab.rollout.stored_rollouts": ("history", "rollouts"),
        "kantan_agents.lab.rollout.verdict.status": (
            "ArmMetrics",
            "GuardEvidence",
            "MetricEvidence",
            "RolloutStatus",
        ),
    },
)
