"""Finds missing tools of a definition."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from kantan_agents.subagent_files.definition import AgentDefinition
from kantan_agents.subagent_files.grants import TASK_NAMES, named_tools
from kantan_agents.subagent_files.skill_tools import SKILL_TOOLS
from kantan_agents.tool_rules.names import NamePatterns

_MCP = "mcp__"
_TASK = frozenset(map(str.casefold, TASK_NAMES))
_MOST = 20


@attrs.frozen
class UnknownTool:
    """A missing tool, and the existing name that was probably meant."""

    name: str
    nearest: str | None = None

    def __str__(self) -> str:
        return f"{self.name!r} (the nearest name is {self.nearest!r})" if self.nearest else repr(self.name)


def local_tools(definition: AgentDefinition) -> tuple[str, ...]:
    """Return the allowed tools that must exist in the program itself.

    MCP servers may connect later.
    """
    if not isinstance(definition.tools, tuple):
        return ()
    names = (name for entry in definition.tools for name in named_tools(entry))
    others = SKILL_TOOLS if definition.skills else ()
    return tuple(
        dict.fromkeys(
            name
            for name in names
            if name != "*"
            and not name.lower().startswith(_MCP)
            and name.casefold() not in _TASK
            and name not in others
        )
    )


def unknown_tools(definition: AgentDefinition, names: Collection[str]) -> tuple[UnknownTool, ...]:
    """Return the allowed tools that do not exist. Entries match exactly, as in rules."""
    wanted = local_tools(definition)
    if not wanted:
        return ()
    patterns = NamePatterns(wanted)
    found = {entry for name in names for entry in patterns.covering(name)}
    missing = [name for name in wanted if name not in found]
    if not (missing and names):
        return tuple(map(UnknownTool, missing))
    from kantan_agents.support.nearest import nearest  # not at the top: files are read without it

    return tuple(UnknownTool(name, nearest(name, names)) for name in missing)


def listed(unknown: Sequence[UnknownTool]) -> str:
    """Join the tools for a sentence."""
    shown = [str(tool) for tool in unknown[:_MOST]]
    more = len(unknown) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])


def names_no_tool(unknown: Sequence[UnknownTool], *, where: str) -> str:
    """Return ``tools: no tool here is named 'Read', 'Grep'``."""
    return f"tools: no tool {where} is named {listed(unknown)}"
