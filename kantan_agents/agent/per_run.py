"""Instructions chosen for each run, such as a ``Rollout``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, Protocol

from kantan_agents.agent.running.chosen_arm import ChosenArm
from kantan_agents.core.prompt import Prompt
from kantan_agents.tool_rules import RuleLayers, ToolRules
from kantan_agents.traces.capture import RunRecord

ARM_LIMIT: Final = "arm "


class Chooser(Protocol):
    """Chooses for the runs of one agent; ``control_limits`` apply without an arm."""

    control_limits: tuple[tuple[str, ToolRules], ...]

    def __call__(self, input: Any, context: Any) -> ChosenArm:
        """Return the choice for a new run; never raises."""
        ...

    def recorded(self, record: RunRecord) -> Any:
        """Return the Agent that repeats a recorded run."""
        ...


class PerRun(ABC):
    """Instructions that are chosen at the start of a run."""

    @property
    @abstractmethod
    def control(self) -> str | Prompt:
        """The instructions if no arm is chosen."""

    @abstractmethod
    def chooser(self, agent: Any) -> Chooser:
        """Return the chooser for an incomplete agent; raises if they do not fit."""


def limited(rules: RuleLayers, chooser: Chooser | None) -> RuleLayers:
    """Return rules with the chooser's limits instead of other arm limits."""
    kept = tuple(limit for limit in rules.limits if not limit[0].startswith(ARM_LIMIT))
    limits = (*kept, *(chooser.control_limits if chooser is not None else ()))
    return rules if limits == rules.limits else RuleLayers(rules.layers, limits)
