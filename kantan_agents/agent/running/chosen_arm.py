"""The agent chosen for one run, if each run has a choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from agents import RunState

from kantan_agents.tool_rules import ToolRules

ForState = Callable[[Any, Any], "ChosenArm | None"]
"""Called with a ``RunState`` that is resumed and the agent that resumes it."""

for_states: list[ForState] = []
"""Functions that know the choice of a state, for agents that do not choose themselves."""


@attrs.frozen
class ChosenArm:
    """The choice for one run.

    Attributes:
        agent: The agent of the run: the called one, or one like it.
        arm: Name of the chosen arm.
        metadata: Standard keys of the trace metadata that record the choice.
        limits: Limits on the tools of the run: pairs of a name and its rules.
        mistake: An error that the run raises once its trace is open.
    """

    agent: Any
    arm: str
    metadata: Mapping[str, Any]
    limits: tuple[tuple[str, ToolRules], ...] = ()
    mistake: Exception | None = None


def chosen_before(input: Any, agent: Any) -> ChosenArm | None:
    """Return the earlier choice for a paused run; None without one, or for any other input."""
    for ask in for_states if isinstance(input, RunState) else ():
        found = ask(input, agent)
        if found is not None:
            return found
    return None
