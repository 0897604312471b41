"""A tool call of a run."""

from __future__ import annotations

from typing import Any

import attrs


@attrs.frozen
class ToolUse:
    """A tool call of a run.

    Attributes:
        name: Name of the tool.
        arguments: The arguments as JSON data; the string itself if it is not JSON.
        output: The result of the tool as a string; None if the call was denied or failed.
        agent: Name of the agent that called it.
        is_denied: Whether the tool rules denied or a reviewer rejected the call.
    """

    name: str
    arguments: Any
    output: str | None
    agent: str
    is_denied: bool = False
