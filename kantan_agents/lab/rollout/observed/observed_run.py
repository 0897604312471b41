"""A finished run of a rollout."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from kantan_agents.lab.rollout.plan import RolloutPlan
from kantan_agents.traces.metadata import ARM, ARM_SHARE, NOT_DRAWN, ROLLOUT, ROLLOUT_UNIT
from kantan_agents.traces.store.experiment_keys import EXPERIMENT_KEY

_RUN_ID: Final = re.compile(r"[0-9a-f]{32}")
_DIGITS: Final = 12
"""Number of digits that are the milliseconds since 1970."""


@attrs.frozen
class Drawn:
    """How a run got its arm; ``share`` is of all new arms."""

    run_id: str
    arm: int
    unit: str
    share: float

    @property
    def began(self) -> float:
        """Start of the run, in seconds since 1970, from its id."""
        return int(self.run_id[:_DIGITS], 16) / 1_000


@attrs.frozen
class ObservedRun:
    """A finished run; ``seconds`` is None if it failed, or if the clock has jumped back."""

    drawn: Drawn
    failed: bool
    seconds: float | None
    tokens: float | None
    cost: float | None
    ended: float

    @property
    def id(self) -> str:
        """Id of the run."""
        return self.drawn.run_id

    @property
    def unit(self) -> str:
        """Pseudonym of its user."""
        return self.drawn.unit

    @property
    def arm(self) -> int:
        """Number of its arm; 0 is the control."""
        return self.drawn.arm

    @property
    def began(self) -> float:
        """Its start, in seconds since 1970."""
        return self.drawn.began


def reason_not_drawn(metadata: Mapping[str, Any], name: str) -> str | None:
    """Return why a rollout has assigned no arm to a run."""
    reason = metadata.get(NOT_DRAWN)
    return reason if metadata.get(ROLLOUT) == name and isinstance(reason, str) else None


def drawn_of(metadata: Mapping[str, Any], name: str, plan: RolloutPlan) -> Drawn | None:
    """Return how this rollout assigned a run; None if it did not."""
    if metadata.get(ROLLOUT) != name or EXPERIMENT_KEY in metadata or NOT_DRAWN in metadata:
        return None
    run_id, unit = metadata.get("agent_run_id"), metadata.get(ROLLOUT_UNIT)
    arm, own = metadata.get(ARM), metadata.get(ARM_SHARE)
    if not (isinstance(run_id, str) and isinstance(unit, str) and isinstance(arm, str) and arm in plan.arms):
        return None
    if _RUN_ID.fullmatch(run_id) is None:
        return None
    if not isinstance(own, (int, float)) or not 0 <= own <= 1:
        return None
    number = list(plan.arms).index(arm)
    if number == 0:
        return Drawn(run_id, 0, unit, 1.0 - own)
    return Drawn(run_id, number, unit, min(1.0, own / plan.weights[number - 1]))
