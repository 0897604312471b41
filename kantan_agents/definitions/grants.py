"""What the tools of an agent file mean as tool rules; where that cannot be said, less is granted.

Files name tools as Claude Code does: ``Read``, ``Bash(git diff:*)``, ``mcp__github``, ``Agent(tester)``.
"""

from __future__ import annotations

import re

import attrs

from kantan_agents.definitions.definition import AgentDefinition
from kantan_agents.tool_rules import NO_RULES, ToolRules
from kantan_agents.tool_rules.calls import is_call_pattern, parse_call_pattern

TASK_NAMES = ("Task", "Agent")
"""What the tool that delegates is called in agent files, whatever its name is here."""

# What stands behind these in parentheses is a path, a pattern of paths, a site: nothing a rule here can hold.
_OF_OTHER_KIND = frozenset(
    {
        *("read", "write", "edit", "multiedit", "notebookread", "notebookedit", "glob", "grep", "ls"),
        *("view", "replace", "fileread", "filewrite", "fileedit", "webfetch", "websearch", "fetch"),
    }
)
_KEY_AND_VALUE = re.compile(r"\w+:(?!\*$)")
_MCP_SERVER = re.compile(r"mcp__(?:(?!__)[^*?\[()])+")
_PARENTHESES = re.compile(r"[()]")
_EVERY = "*"


@attrs.frozen
class Grants:
    """Tool rules that say what an agent file says.

    Attributes:
        rules: The rules.
        remarks: Entries that could not be taken as they are, each with what became of it.
    """

    rules: ToolRules
    remarks: tuple[str, ...] = ()


def grants_of(definition: AgentDefinition) -> Grants:
    """Return what a definition's ``tools`` and ``disallowed_tools`` mean.

    An entry of ``tools`` that cannot be understood grants nothing. One of ``disallowed_tools`` denies its
    tool altogether.
    """
    remarks: list[str] = []
    allow = _allowed(definition.tools, remarks) if isinstance(definition.tools, tuple) else None
    deny = _denied(definition.disallowed_tools, remarks)
    if allow is None and not deny:
        return Grants(NO_RULES)
    return Grants(ToolRules.parse({"allow": allow, "deny": deny or None}), tuple(remarks))


def _allowed(entries: tuple[str, ...], remarks: list[str]) -> list[str]:
    return [name for entry in entries for name in _granted(entry, remarks)]


def _granted(entry: str, remarks: list[str]) -> list[str]:
    try:
        return _names(entry)
    except ValueError as error:
        remarks.append(f"tools: {error}; it grants nothing")
        return []


def _denied(entries: tuple[str, ...], remarks: list[str]) -> list[str]:
    return [name for entry in entries for name in _refused(entry, remarks)]


def _refused(entry: str, remarks: list[str]) -> list[str]:
    try:
        return _names(entry)
    except ValueError as error:
        tool = _PARENTHESES.split(entry)[0].strip() or _EVERY
        remarks.append(f"disallowedTools: {error}; {tool} is denied altogether")
        return _names(tool)


def _names(entry: str) -> list[str]:
    """Return the entries of a rule set that mean what one of a file means; ValueError if there are none."""
    entry = entry.strip()
    if not entry:
        return []
    if is_call_pattern(entry):
        return _calls(entry)
    if entry in TASK_NAMES:
        return list(TASK_NAMES)
    # A server's name stands for all its tools.
    return [entry, f"{entry}__*"] if _MCP_SERVER.fullmatch(entry) else [entry]


def _calls(entry: str) -> list[str]:
    tool, _, rest = entry.partition("(")
    argument = rest.rpartition(")")[0]
    if tool.strip() in TASK_NAMES and entry.endswith(")"):
        types = [name.strip() for name in argument.split(",")]
        entries = [f"{name}({kind})" for kind in types for name in TASK_NAMES]
    elif argument.strip() != _EVERY and (
        tool.strip().casefold() in _OF_OTHER_KIND or _KEY_AND_VALUE.match(argument)
    ):
        raise ValueError(f"{entry!r}: what is in its parentheses cannot be held against a call")
    elif entry.endswith(")"):
        # Both ways of writing "and any further words" are in use.
        begin = argument.removesuffix(_EVERY)
        goes_on = begin != argument and begin.strip() and begin[-1].isspace()
        entries = [f"{tool}({begin.rstrip()}:*)" if goes_on else entry]
    else:
        entries = [entry]
    for made in entries:
        parse_call_pattern(made)
    return entries
