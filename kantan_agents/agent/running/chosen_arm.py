"""``ChosenArm``: which agent makes a run, if that is decided for each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from agents import RunState

from kantan_agents.tool_rules import ToolRules

ForState = Callable[[Any, Any], "ChosenArm | None"]
"""Called with a ``RunState`` that is resumed and the agent that resumes it."""

for_states: list[ForState] = []
"""What is asked about states that an agent resumes which does not choose itself."""


@attrs.frozen
class ChosenArm:
    """What was chosen for one run.

    Attributes:
        agent: The agent that makes the run: the one that was asked, or one like it.
        arm: Name of what was chosen.
        metadata: Standard keys of the trace metadata that say what was chosen.
        limits: Limits on the tools of the run: pairs of a name and its rules.
        mistake: An error that the run raises once its trace is open.
    """

    agent: Any
    arm: str
    metadata: Mapping[str, Any]
    limits: tuple[tuple[str, ToolRules], ...] = ()
    mistake: Exception | None = None


def chosen_before(input: Any, agent: Any) -> ChosenArm | None:
    """Return what was chosen for a paused run before; None if nothing was, or for any other input."""
    for ask in for_states if isinstance(input, RunState) else ():
        found = ask(input, agent)
        if found is not None:
            return found
    return None
