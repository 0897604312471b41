"""``Chosen``: which agent makes a run, if that is decided for each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kantan_agents.tool_rules import ToolRules


@attrs.frozen
class Chosen:
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
