"""``PerRun``: instructions that are chosen anew for each run, such as a ``Rollout``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from kantan_agents.capture import RunRecord
from kantan_agents.prompt import Prompt
from kantan_agents.running.chosen import Chosen


class Chooser(Protocol):
    """Chooses for the runs of one agent."""

    def __call__(self, input: Any, context: Any) -> Chosen:
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


def control_of(instructions: Any) -> Any:
    """Return the instructions of the agent itself."""
    return instructions.control if isinstance(instructions, PerRun) else instructions
