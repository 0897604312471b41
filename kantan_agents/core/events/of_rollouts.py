"""The event of a rollout, which belongs to no run."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from kantan_agents.core.events.base import EventBase


@attrs.frozen(kw_only=True)
class RolloutChanged(EventBase):
    """A rollout has changed, in this process or in another one. Its ``run_id`` is empty, its ``sequence`` 0.

    Attributes:
        rollout: Name of the rollout; ``agent`` is the agent that has it.
        action: ``"promote"``, ``"stop"``, or ``"return"`` if a guard has returned all units to the control.
        share: The share of all new arms together from now on, 0 to 1.
        arm: The arm that all units get from now on; None while arms are drawn, or after a stop.
        author: Who has changed it.
        reason: Why.
    """

    type: ClassVar[Literal["rollout_changed"]] = "rollout_changed"

    rollout: str
    action: str
    share: float
    arm: str | None
    author: str
    reason: str
