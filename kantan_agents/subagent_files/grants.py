"""Translates the tool lists of a definition into tool rules; unclear entries grant less, never more."""

from __future__ import annotations

import re

import attrs

from kantan_agents.subagent_files.definition import AgentDefinition
from kantan_agents.subagent_files.tool_lists import ToolFilter
from kantan_agents.tool_rules import NO_RULES, ToolRules
from kantan_agents.tool_rules.calls import (
    as_path_or_host,
    is_about_path_or_host,
    is_call_pattern,
    parse_call_pattern,
)

TASK_NAMES = ("Task", "Agent")
"""The delegation tool, whatever its name in the program."""

# In parentheses they have a path, a path pattern or a site. Rules check the toolkit's.
_PATH_AND_SITE_TOOLS = frozenset(
    {
        *("read", "write", "edit", "multiedit", "notebookread", "notebookedit", "glob", "grep", "ls"),
        *("view", "replace", "fileread", "filewrite", "fileedit", "webfetch", "websearch", "fetch"),
    }
)
_KEY_AND_VALUE = re.compile(r"\w+:(?!\*$)")
_TASK_NAME = {name.casefold(): name for name in TASK_NAMES}
_PARENTHESES = re.compile(r"[()]")
_EVERY = "*"
_ONLY_DELEGATION = (
    "tools: only delegation is allowed, so the agents that are delegated to have no tools: they get at most "
    "those that are allowed here; list the tools that they need"
)


@attrs.frozen
class Grants:
    """The tool rules for a definition's tool lists.

    Attributes:
        rules: The rules.
        remarks: Entries without an exact translation, each with the rule used instead, and a warning if
            subagents get no tools.
    """

    rules: ToolRules
    remarks: tuple[str, ...] = ()


def grants_of(definition: AgentDefinition) -> Grants:
    """Return the rules for a definition's ``tools`` and ``disallowed_tools``.

    An unclear entry of ``tools`` grants nothing; an unclear entry of ``disallowed_tools`` denies its whole
    tool. Entries of ``tools`` match names exactly. Entries of ``disallowed_tools`` ignore case and
    separators, because names differ between programs: ``Bash`` denies ``bash``.
    """
    return grants_for(definition.tools, definition.disallowed_tools)


def grants_for(tools: ToolFilter, disallowed: tuple[str, ...] = ()) -> Grants:
    """Return the rules for two tool lists."""
    remarks: list[str] = []
    allow = _allowed(tools, remarks) if isinstance(tools, tuple) else None
    if allow and all(_tool_of(rule) in TASK_NAMES for rule in allow):
        remarks.append(_ONLY_DELEGATION)
    deny = _denied(disallowed, remarks)
    if allow is None and not deny:
        return Grants(NO_RULES)
    rules = ToolRules.parse({"allow": allow, "deny": deny or None}, folds_denials=True)
    return Grants(rules, tuple(remarks))


def named_tools(entry: str) -> list[str]:
    """Return the tools in an entry of ``tools``, by name or pattern."""
    return [_tool_of(rule) for rule in _allow_rules(entry, [])]


def _tool_of(rule: str) -> str:
    return parse_call_pattern(rule).tool if is_call_pattern(rule) else rule


def _allowed(entries: tuple[str, ...], remarks: list[str]) -> list[str]:
    return [name for entry in entries for name in _allow_rules(entry, remarks)]


def _allow_rules(entry: str, remarks: list[str]) -> list[str]:
    try:
        return _rule_entries(entry)
    except ValueError as error:
        remarks.append(f"tools: {error}; it grants nothing")
        return []


def _denied(entries: tuple[str, ...], remarks: list[str]) -> list[str]:
    return [name for entry in entries for name in _deny_rules(entry, remarks)]


def _deny_rules(entry: str, remarks: list[str]) -> list[str]:
    try:
        return _denied_entries(entry)
    except ValueError as error:
        tool = _PARENTHESES.split(entry)[0].strip() or _EVERY
        remarks.append(f"disallowedTools: {error}; {tool} is denied entirely")
        return _denied_entries(tool)


def _denied_entries(entry: str) -> list[str]:
    return _rule_entries(_TASK_NAME.get(entry.strip().casefold(), entry))


def _rule_entries(entry: str) -> list[str]:
    entry = entry.strip()
    if not entry:
        return []
    if is_call_pattern(entry):
        return _call_entries(entry)
    return list(TASK_NAMES) if entry in TASK_NAMES else [entry]


def _call_entries(entry: str) -> list[str]:
    tool, _, rest = entry.partition("(")
    argument = rest.rpartition(")")[0]
    if tool.strip() in TASK_NAMES and entry.endswith(")"):
        types = [name.strip() for name in argument.split(",")]
        entries = [f"{name}({kind})" for kind in types for name in TASK_NAMES]
    elif argument.strip() != _EVERY and entry.endswith(")") and is_about_path_or_host(tool, argument):
        entries = [f"{tool}({as_path_or_host(tool, argument)})"]
    elif argument.strip() != _EVERY and (
        tool.strip().casefold() in _PATH_AND_SITE_TOOLS or _KEY_AND_VALUE.match(argument)
    ):
        raise ValueError(f"{entry!r}: the text in parentheses cannot be checked against a call")
    elif entry.endswith(")"):
        # Files write a prefix as `git diff:*` or as `git diff *`.
        prefix = argument.removesuffix(_EVERY)
        is_prefix = prefix != argument and prefix.strip() and prefix[-1].isspace()
        entries = [f"{tool}({prefix.rstrip()}:*)" if is_prefix else entry]
    else:
        entries = [entry]
    for pattern in entries:
        parse_call_pattern(pattern)  # raises ValueError if it is invalid
    return entries
