"""``ToolUse``: a tool call of a run, as evaluators and reports see it."""

from __future__ import annotations

from typing import Any

import attrs


@attrs.frozen
class ToolUse:
    """A tool call of a run.

    Attributes:
        name: Name of the tool.
        arguments: The arguments as JSON data; the text itself if it is not JSON.
        output: What the tool returned, as text; None if it was refused or has failed.
        agent: Name of the agent that called it.
        is_refused: Whether the tool rules or a person refused the call.
    """

    name: str
    arguments: Any
    output: str | None
    agent: str
    is_refused: bool = False
