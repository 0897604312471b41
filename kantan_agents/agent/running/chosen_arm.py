"""The agent chosen for one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from agents import RunState

from kantan_agents.tool_rules import ToolRules

ForState = Callable[[Any, Any], "ChosenArm | None"]
"""Called with a resumed ``RunState`` and the agent that resumes it."""

for_states: list[ForState] = []
"""Find a state's choice, for agents that do not choose."""


@attrs.frozen
class ChosenArm:
    """The choice for one run, which raises ``mistake`` once its trace is open."""

    agent: Any
    arm: str
    metadata: Mapping[str, Any]
    limits: tuple[tuple[str, ToolRules], ...] = ()
    mistake: Exception | None = None


def chosen_before(input: Any, agent: Any) -> ChosenArm | None:
    """Return the earlier choice for a paused run, if any."""
    for ask in for_states if isinstance(input, RunState) else ():
        found = ask(input, agent)
        if found is not None:
            return found
    return None
