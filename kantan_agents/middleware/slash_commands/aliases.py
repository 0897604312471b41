"""Rules for users that name an alias of a command, as rules about the tool it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kantan_agents.tool_rules import ToolRules


def allowed_by_alias(rules: ToolRules, aliases: Mapping[str, str]) -> ToolRules:
    """Return what rules allow by the name of an alias, as rules about the tools.

    No pattern counts here: ``allow=["read*"]`` allows nothing that somebody calls ``reads`` besides.

    Args:
        rules: The rules.
        aliases: Names of aliases, each with the name of its tool.
    """
    if not isinstance(rules.allow, tuple):
        return ToolRules()
    names = [
        renamed
        for alias, tool in aliases.items()
        for entry, renamed in _renamed(rules.about((alias,))["allow"], tool)
        if entry.partition("(")[0].strip() == alias
    ]
    return ToolRules.parse({"allow": names})


def refused_by_alias(rules: ToolRules, aliases: Mapping[str, str]) -> Iterator[ToolRules]:
    """Yield what rules refuse to an alias, patterns included, as rules about the tool.

    They are to hold each by itself: merged, one would take the place of another about the same parameter.

    Args:
        rules: The rules.
        aliases: Names of aliases, each with the name of its tool.
    """
    if not rules.deny and not rules.params:
        return
    for alias, tool in aliases.items():
        said = rules.about((alias,))
        denied = [renamed for _, renamed in _renamed(said["deny"], tool)]
        if denied:
            yield ToolRules.parse({"deny": denied})
        for rule in said["params"].values():
            yield ToolRules.parse({"params": {tool: rule}})


def _renamed(entries: Any, tool: str) -> Iterator[tuple[str, str]]:
    """Yield entries with what they are for the tool: ``rm(a:*)`` is ``delete(a:*)``."""
    for entry in entries if isinstance(entries, list) else ():
        _, bracket, call = entry.partition("(")
        yield entry, f"{tool}{bracket}{call}"
