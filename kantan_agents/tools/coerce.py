"""Converts users' tools, SDK tools, functions or agents, to SDK tools."""

from __future__ import annotations

import inspect
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args, get_origin

import agents
from agents.function_schema import function_schema
from agents.mcp import MCPServer

from kantan_agents.errors import InvalidOptionError, ToolNameRequiredError, ToolSchemaError
from kantan_agents.tools.facts import copy_declaration

_REMAKE = "_kantan_remake"
_KINDS = tuple(get_origin(kind) or kind for kind in get_args(agents.Tool))
_shown = reprlib.Repr()
_shown.maxother = 120
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")
_OF_AGENT = ("on_invoke_tool", "_agent_instance")
_OWN_NAME = "choose a name with agent.as_tool(tool_name=..., tool_description=...)"
_TO_DO = (
    "give the parameter a type that says what it contains, such as a pydantic model or a list of them, "
    "or make the tool with agents.function_tool(strict_mode=False)"
)


def coerce_tool(tool: Any) -> Any:
    """Return SDK tools unchanged, functions as tools, and agents like their ``as_tool``; E4, E29, E75."""
    if isinstance(tool, agents.FunctionTool):  # the usual case
        return _named(tool)
    agent = _agent_in(tool)
    if agent is not None:
        return agent_as_tool(agent)
    _check_is_tool(tool)
    name = getattr(tool, "name", None)
    if name and isinstance(name, str):
        return tool
    name = getattr(tool, "__name__", None)
    if callable(tool) and isinstance(name, str) and name.isidentifier():
        made = _make_function_tool(tool)
        copy_declaration(made, tool)
        return made
    raise ToolNameRequiredError(tool=tool)


def coerce_tools(tools: Iterable[Any]) -> list[Any]:
    """Return SDK tools in order; of functions with the same name, the last one wins (as in 0.1.x)."""
    # Hosted tools share a name by kind, and a namespace makes equal names different tools.
    named: dict[Any, Any] = {}
    names_of_agents: dict[str, str] = {}
    for given in tools:
        if type(given) is agents.FunctionTool and given._tool_namespace is None:  # the usual case
            name = given.name
            if name and type(name) is str:
                named[name] = given
                continue
        tool = coerce_tool(given)
        agent = _agent_in(given)
        if agent is not None and names_of_agents.setdefault(tool.name, agent.name) != agent.name:
            both = f"{names_of_agents[tool.name]!r} and {agent.name!r}"
            reason = f"the agents {both} would have the same tool name, {tool.name}; {_OWN_NAME}"
            raise InvalidOptionError(option="tools", reason=reason)
        named[function_name(tool) or id(tool)] = tool
    return list(named.values())


def function_name(tool: Any) -> str | None:
    """Return a function tool's name with its namespace."""
    if not isinstance(tool, agents.FunctionTool):
        return None
    return tool.qualified_name


def _named(tool: agents.FunctionTool) -> agents.FunctionTool:
    if tool.name and isinstance(tool.name, str):
        return tool
    raise ToolNameRequiredError(tool=tool)


def _agent_in(tool: Any) -> agents.Agent[Any] | None:
    # On the class, because other objects' attributes may do anything.
    if isinstance(getattr(type(tool), "sdk_agent", None), property):
        tool = tool.sdk_agent
    return tool if isinstance(tool, agents.Agent) else None


def agent_as_tool(
    agent: agents.Agent[Any], name: str | None = None, description: str | None = None, **options: Any
) -> agents.FunctionTool:
    """Return an agent as a tool; by default, name and description derive from the agent's."""
    if not description:
        whole = f"Ask the agent {agent.name} to do a task, and get its answer."
        description = agent.handoff_description or whole
    if not name:
        name = _NOT_IN_NAMES.sub("_", agent.name).lower()  # like the SDK, which logs a warning about it
        if not name.strip("_"):
            reason = f"the agent {agent.name!r} has no letter a to z or digit for a tool name; {_OWN_NAME}"
            raise InvalidOptionError(option="tools", reason=reason)
    tool = agent.as_tool(name, description, **options)

    def remake(other: agents.Agent[Any]) -> agents.FunctionTool:
        return agent_as_tool(other, name, description, **options)

    setattr(tool, _REMAKE, remake)
    return tool


def for_other_agent(tool: agents.FunctionTool, agent: agents.Agent[Any]) -> agents.FunctionTool | None:
    """Return a copy, for another agent, of a tool from ``agent_as_tool``."""
    remake: Callable[[agents.Agent[Any]], agents.FunctionTool] | None = getattr(tool, _REMAKE, None)
    if remake is None:
        return None
    made = remake(agent)
    # The user may have changed the tool since.
    kept = {name: value for name, value in vars(tool).items() if name not in _OF_AGENT}
    vars(made).update(kept)
    return made


def _check_is_tool(tool: Any) -> None:
    """Raise E75 for an object that only has a name: the model could never call it."""
    if isinstance(tool, MCPServer):
        reason = f"{tool.name!r} is an MCP server; pass it as mcp_servers=[...]"
    elif isinstance(tool, agents.Handoff):
        reason = f"{tool.tool_name!r} is a hand-off; pass it as handoffs=[...]"
    elif type(tool).__name__ == "AgentDefinition" and hasattr(tool, "system_prompt"):
        reason = f"{tool.name!r} is an AgentDefinition; pass task_tool([definition]), which delegates to it"
    elif isinstance(getattr(tool, "name", None), str) and not isinstance(tool, _KINDS):
        reason = f"must be functions, agents or tools of the SDK, not {_shown.repr(tool)}"
    else:
        return
    raise InvalidOptionError(option="tools", reason=reason)


def _make_function_tool(function: Callable[..., Any]) -> agents.FunctionTool:
    """Like ``agents.function_tool``, but the error (E29) names the parameter."""
    try:
        return agents.function_tool(function)
    except Exception as error:
        found = dict(_culprits(function))
        listed = [f"parameter {name}: {reason}" for name, reason in found.items()]
        reason = "; ".join(listed or [_first_sentence(error)])
        raise ToolSchemaError(
            tool_name=function.__name__, parameters=tuple(found), reason=f"{reason}; {_TO_DO}"
        ) from error


def _culprits(function: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    for place, parameter in enumerate(signature.parameters.values()):
        if place and _is_context(function, parameter):
            yield parameter.name, "the context of the SDK can only be the first parameter"
            continue
        error = _error_about(_taking(function, signature, parameter))
        if error is not None:
            yield parameter.name, f"{inspect.formatannotation(parameter.annotation)}: {error}"


def _error_about(function: Callable[..., Any]) -> str | None:
    try:
        function_schema(function)
    except Exception as error:  # noqa: BLE001 - whatever the SDK or pydantic raises about a type
        return _first_sentence(error)
    return None


def _first_sentence(error: Exception) -> str:
    text = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
    return text or type(error).__name__


def _taking(
    function: Callable[..., Any], signature: inspect.Signature, parameter: inspect.Parameter
) -> Callable[..., Any]:
    def alone() -> None:
        """Take one parameter."""

    alone.__name__ = function.__name__
    alone.__module__ = function.__module__
    alone.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[parameter], return_annotation=inspect.Signature.empty
    )
    annotations = _annotations(function)
    alone.__annotations__ = {name: hint for name, hint in annotations.items() if name == parameter.name}
    return alone


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return inspect.get_annotations(inspect.unwrap(function), eval_str=True)
    except Exception:  # noqa: BLE001 - a name in an annotation may not exist
        return dict(getattr(function, "__annotations__", {}))


def _is_context(function: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    hint = _annotations(function).get(parameter.name)
    kind = getattr(hint, "__origin__", hint)
    return isinstance(kind, type) and issubclass(kind, agents.RunContextWrapper)
