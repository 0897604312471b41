"""``PerRun``: instructions that are chosen anew for each run, such as a ``Rollout``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, Protocol

from kantan_agents.agent.running.chosen_arm import ChosenArm
from kantan_agents.core.prompt import Prompt
from kantan_agents.tool_rules import RuleLayers, ToolRules
from kantan_agents.traces.capture import RunRecord

ARM_LIMIT: Final = "arm "
"""Begins the names of the limits that a choice sets."""


class Chooser(Protocol):
    """Chooses for the runs of one agent.

    Attributes:
        control_limits: Limits on the tools of the agent itself, wherever nothing is chosen.
    """

    control_limits: tuple[tuple[str, ToolRules], ...]

    def __call__(self, input: Any, context: Any) -> ChosenArm:
        """Return what was chosen for a run that begins; it raises nothing.

        Args:
            input: The input of the run.
            context: Its context; None if the caller gives none.
        """
        ...

    def recorded(self, record: RunRecord) -> Any:
        """Return the Agent that makes a recorded run again, always in the same way."""
        ...


class PerRun(ABC):
    """Instructions of an ``Agent`` that are chosen when a run begins."""

    @property
    @abstractmethod
    def control(self) -> str | Prompt:
        """The instructions of the agent itself: wherever nothing is chosen."""

    @abstractmethod
    def chooser(self, agent: Any) -> Chooser:
        """Return what chooses for the runs of an agent.

        Args:
            agent: The Agent; it is not complete yet.

        Raises:
            KantanAgentsError: The choice does not fit the agent.
        """


def limited(rules: RuleLayers, chooser: Chooser | None) -> RuleLayers:
    """Return the rules of an agent with the limits of its chooser, and without those of another one."""
    kept = tuple(limit for limit in rules.limits if not limit[0].startswith(ARM_LIMIT))
    limits = (*kept, *(chooser.control_limits if chooser is not None else ()))
    return rules if limits == rules.limits else RuleLayers(rules.layers, limits)
