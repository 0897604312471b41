"""Tags this library's tools that change and send nothing.

A name proves nothing: a module or MCP server may have its own ``Read``.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from agents import FunctionTool

_MARK: Final = "_kantan_only_reads"
ToolT = TypeVar("ToolT", bound=FunctionTool)


def mark_read_only(tool: ToolT) -> ToolT:
    """Tag a tool that only reads, queries the user, or delegates."""
    setattr(tool, _MARK, True)
    return tool


def is_read_only(tool: Any) -> bool:
    """Return whether a tool or its original is tagged."""
    return getattr(tool, _MARK, False) is True
