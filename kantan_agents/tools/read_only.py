"""Marks the tools of this library that change nothing and send nothing, to distinguish them from others.

A name proves nothing: a module or an MCP server may have a ``Read`` of its own.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from agents import FunctionTool

_MARK: Final = "_kantan_only_reads"
ToolT = TypeVar("ToolT", bound=FunctionTool)


def mark_read_only(tool: ToolT) -> ToolT:
    """Mark a tool of this library that only reads, asks the user, or lets another agent work; return it."""
    setattr(tool, _MARK, True)
    return tool


def is_read_only(tool: Any) -> bool:
    """Return whether a tool is marked; copies of a marked tool are too."""
    return getattr(tool, _MARK, False) is True
