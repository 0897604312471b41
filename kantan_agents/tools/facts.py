"""Collects facts about tools for the rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

from agents import (
    ApplyPatchTool,
    ComputerTool,
    CustomTool,
    FunctionTool,
    HostedMCPTool,
    LocalShellTool,
    ShellTool,
    WebSearchTool,
)

from kantan_agents.core.interception import ToolCall
from kantan_agents.errors import InvalidOptionError
from kantan_agents.tool_rules import ToolFacts
from kantan_agents.tool_rules.calls import COMMAND
from kantan_agents.tool_rules.decide import schema_of
from kantan_agents.tools.received_arguments import received_by
from kantan_agents.tools.server_names import (
    Surroundings,
    bound_to,
    hosted_origin,
    implementation_of,
    names_in_rules,
    names_of_server,
    origin_of,
    server_of,
)

ToolT = TypeVar("ToolT")

_MARK = "__kantan_rule_parameter__"
_NAMES = "__kantan_names__"
_FOLD = "__kantan_fold__"
_AROUND = "__kantan_around__"
_MATCHED = "__kantan_matched__"
_names_declared: set[str] = set()  # usually empty; then no tool needs to be checked

# Kinds of tools that operators also call by other names than the SDK's.
_ALIASES: tuple[tuple[type, tuple[str, ...]], ...] = (
    (ComputerTool, ("computer", "computer_use")),
    (WebSearchTool, ("web_search", "web_search_preview")),
)
_PARAMETERS: tuple[tuple[type, str], ...] = (
    (ShellTool, "commands"),
    (LocalShellTool, "command"),
    (ApplyPatchTool, "path"),
    (CustomTool, "input"),
)


def rule_parameter(name: str) -> Callable[[ToolT], ToolT]:
    """Declare which parameter of a tool rules such as ``bash(git:*)`` check.

    The default is the first string parameter. A decorator for functions and SDK tools::

        @rule_parameter("command")
        def bash(directory: str, command: str) -> str: ...

    Args:
        name: Name of the parameter.

    Raises:
        InvalidOptionError: E75, when an ``Agent`` is created, if the tool has no such parameter.
    """
    if not isinstance(name, str):
        raise InvalidOptionError(option="rule_parameter", reason=f"must be a parameter's name, not {name!r}")

    def declare(tool: ToolT) -> ToolT:
        _names_declared.add(name)
        try:
            setattr(tool, _MARK, name)
        except AttributeError as error:
            reason = f"cannot be declared on {tool!r}: write a function with def"
            raise InvalidOptionError(option="rule_parameter", reason=reason) from error
        implementation = implementation_of(tool)
        if inspect.isfunction(implementation):
            setattr(implementation, _MARK, name)  # survives `dataclasses.replace(tool, ...)`
        return tool

    return declare


def declare_match(
    tool: FunctionTool,
    parameter: str,
    kind: Literal["path", "domain"],
    canonical: Callable[[str], str | None],
    roots: tuple[str, ...] = (),
) -> None:
    """Declare that ``Tool(param pattern)`` rules match a path or a host in ``parameter``.

    ``canonical`` returns the compared form: a path relative to ``roots``, with slashes and ``""`` for the
    root, or a host in lower case and ASCII; None for a value that the tool rejects, which deny then covers
    and allow does not. It must not block.
    """
    rule_parameter(parameter)(tool)
    for place in (tool, implementation_of(tool)):
        if place is tool or inspect.isfunction(place):
            setattr(place, _MATCHED, (kind, canonical, roots))


def declare_names(tool: FunctionTool, names: tuple[str, ...], fold: Callable[[str], str]) -> None:
    """Declare further names for rules; ``fold`` maps equivalent values to one."""
    setattr(tool, _NAMES, names)
    setattr(tool, _FOLD, fold)


def copy_declaration(tool: Any, function: Any) -> None:
    """Copy a function's ``rule_parameter`` to its tool."""
    declared = getattr(function, _MARK, None)
    if declared is not None:
        setattr(tool, _MARK, declared)


def surround(tools: Iterable[Any], around: Surroundings) -> None:
    """Declare the other tools to tools of MCP servers."""
    for tool in tools:
        setattr(tool, _AROUND, around)


def facts_of(tool: Any, around: Surroundings | None = None) -> ToolFacts:
    """Return a tool's facts; E75 if ``rule_parameter`` names a missing parameter.

    ``around`` is needed for an MCP server's tool unless declared.
    """
    if isinstance(tool, FunctionTool):
        return _function_facts(tool, around)
    if isinstance(tool, HostedMCPTool):
        label = label_of(tool)
        names = (tool.name, *names_of_server(label))
        origin = hosted_origin(label, None, around)
        return ToolFacts(tuple(dict.fromkeys(names)), schema=schema_of(None), origin=origin)
    aliases = (alias for kind, known in _ALIASES if isinstance(tool, kind) for alias in known)
    parameter = next((name for kind, name in _PARAMETERS if isinstance(tool, kind)), None)
    return ToolFacts(tuple(dict.fromkeys((tool.name, *aliases))), parameter, schema_of(parameter))


def check_declaration(tool: FunctionTool) -> None:
    """Raise E75 if ``rule_parameter`` names a missing parameter."""
    if _names_declared and _declared(tool) is not None:
        facts_of(tool)


def _function_facts(tool: FunctionTool, around: Surroundings | None) -> ToolFacts:
    schema = tool.params_json_schema or schema_of(None)
    names = [tool.name, tool.qualified_name, *getattr(tool, _NAMES, ())]
    origin, server = None, server_of(tool)
    if server is not None:
        own = _name_on_server(tool)
        names += (own, *names_in_rules(server, own))
        origin = origin_of(server, own, tool.name, getattr(tool, _AROUND, around))
    kind, canonical, roots = _matched(tool)
    return ToolFacts(
        tuple(dict.fromkeys(names)),
        _pattern_parameter(tool, schema),
        schema,
        fold=getattr(tool, _FOLD, None),
        origin=origin,
        received=received_by(tool),
        kind=kind,
        canonical=canonical,
        roots=roots,
    )


def _name_on_server(tool: FunctionTool) -> str:
    name = getattr(bound_to(tool)[1], "name", None)
    return name if isinstance(name, str) else tool.name


def facts_of_listed(tool: Any, around: Surroundings | None = None) -> ToolFacts:
    """Return the facts of a tool or of its guard."""
    facts = getattr(getattr(tool, "on_invoke_tool", None), "facts", None)
    return facts if isinstance(facts, ToolFacts) else facts_of(tool, around)


def facts_of_call(call: ToolCall) -> ToolFacts:
    """Return the facts of a call's tool, at least its name."""
    return ToolFacts((call.name,), guessed=True) if call.tool is None else facts_of_listed(call.tool)


def servers_of(tools: Iterable[Any]) -> frozenset[str]:
    """Return the names of the tools' MCP servers, including hosted ones."""
    found = {label_of(tool) if isinstance(tool, HostedMCPTool) else server_of(tool) for tool in tools}
    return frozenset(name for name in found if name)


def label_of(tool: HostedMCPTool) -> str:
    """Return the label of a hosted MCP server."""
    return str(tool.tool_config.get("server_label", ""))


def _pattern_parameter(tool: FunctionTool, schema: Mapping[str, Any]) -> str | None:
    properties = schema.get("properties") or {}
    declared = _declared(tool)
    if declared is None:
        return next((name for name, value in properties.items() if _is_text(value)), None)
    if declared not in properties:
        known = ", ".join(properties) or "none"
        raise InvalidOptionError(
            option="rule_parameter",
            reason=f"tool {tool.name} has no parameter {declared!r} (it has: {known})",
        )
    return str(declared)


def _declared(tool: FunctionTool) -> str | None:
    mark: str | None = _mark_on(tool, _MARK)
    return mark


def _matched(tool: FunctionTool) -> tuple[str, Callable[[str], str | None] | None, tuple[str, ...]]:
    found = _mark_on(tool, _MATCHED) if _names_declared else None
    return (COMMAND, None, ()) if found is None else found


def _mark_on(tool: FunctionTool, name: str) -> Any:
    places = (tool, implementation_of(tool), getattr(tool, "__wrapped__", None))
    return next((mark for mark in (getattr(place, name, None) for place in places) if mark is not None), None)


def _is_text(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    types = schema.get("type")
    if types == "string" or (isinstance(types, list) and "string" in types):
        return True
    return any(_is_text(option) for option in schema.get("anyOf") or ())
