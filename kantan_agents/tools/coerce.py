"""Converts the tools that users pass, SDK tools, plain functions or agents, to SDK tools."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable
from typing import Any, get_args, get_origin

import agents
from agents.mcp import MCPServer

from kantan_agents.errors import InvalidOptionError, ToolNameRequiredError
from kantan_agents.tools.facts import copy_declaration
from kantan_agents.tools.function_tools import make_function_tool

_REMAKE = "_kantan_remake"
_KINDS = tuple(get_origin(kind) or kind for kind in get_args(agents.Tool))
_shown = reprlib.Repr()
_shown.maxother = 120
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")
_OF_AGENT = ("on_invoke_tool", "_agent_instance")
_OWN_NAME = "choose a name with agent.as_tool(tool_name=..., tool_description=...)"


def coerce_tool(tool: Any) -> Any:
    """Return SDK tools unchanged, and convert plain functions and agents to tools.

    An agent, of this library or of the SDK, becomes a tool as by its ``as_tool``: the tool has the name of
    the agent and its ``handoff_description``.

    Raises:
        ToolNameRequiredError: E4, the object has no usable tool name.
        ToolSchemaError: E29, no schema can describe the parameters of a function.
        InvalidOptionError: E75, the object belongs to another option of the agent, or is an agent whose name
            cannot be the name of a tool.
    """
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
        made = make_function_tool(tool)
        copy_declaration(made, tool)
        return made
    raise ToolNameRequiredError(tool=tool)


def coerce_tools(tools: Iterable[Any]) -> list[Any]:
    """Return SDK tools in order; of several functions with the same name, the last one wins (as in 0.1.x).

    Raises:
        InvalidOptionError: E75, different agents would have the same tool name.
        KantanAgentsError: Any error of ``coerce_tool``.
    """
    # Hosted tools share the name of their kind, and a namespace makes equal names different tools.
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
    """Return the unique name of a function tool, including its namespace; None for other kinds."""
    if not isinstance(tool, agents.FunctionTool):
        return None
    return tool.qualified_name


def _named(tool: agents.FunctionTool) -> agents.FunctionTool:
    if tool.name and isinstance(tool.name, str):
        return tool
    raise ToolNameRequiredError(tool=tool)


def _agent_in(tool: Any) -> agents.Agent[Any] | None:
    """Return the SDK agent that ``tool`` is or, for an agent of this library, represents; else None."""
    # On the class: an attribute of any other object may do anything.
    if isinstance(getattr(type(tool), "sdk_agent", None), property):
        tool = tool.sdk_agent
    return tool if isinstance(tool, agents.Agent) else None


def agent_as_tool(
    agent: agents.Agent[Any], name: str | None = None, description: str | None = None, **options: Any
) -> agents.FunctionTool:
    """Return an agent as a tool, as by the SDK's ``as_tool``.

    Args:
        agent: The agent of the SDK.
        name: Name of the tool; by default made of the agent's.
        description: Its description; by default the agent's ``handoff_description``.
        **options: Other arguments of the SDK's ``as_tool``.

    Raises:
        InvalidOptionError: E75, the agent's name cannot be the name of a tool.
    """
    if not description:
        whole = f"Ask the agent {agent.name} to do a task, and get its answer."
        description = agent.handoff_description or whole
    if not name:
        name = _NOT_IN_NAMES.sub("_", agent.name).lower()  # as the SDK does, which logs a warning about it
        if not name.strip("_"):
            reason = f"the agent {agent.name!r} has no letter a to z or digit for a tool name; {_OWN_NAME}"
            raise InvalidOptionError(option="tools", reason=reason)
    tool = agent.as_tool(name, description, **options)

    def remake(other: agents.Agent[Any]) -> agents.FunctionTool:
        return agent_as_tool(other, name, description, **options)

    setattr(tool, _REMAKE, remake)
    return tool


def for_other_agent(tool: agents.FunctionTool, agent: agents.Agent[Any]) -> agents.FunctionTool | None:
    """Return a tool that was made of an agent as the same tool of another agent; None if the SDK has made it.

    Args:
        tool: A tool that ``agent_as_tool`` has returned, or a copy of one.
        agent: The other agent of the SDK.
    """
    remake: Callable[[agents.Agent[Any]], agents.FunctionTool] | None = getattr(tool, _REMAKE, None)
    if remake is None:
        return None
    made = remake(agent)
    # The user may have changed the tool since.
    kept = {name: value for name, value in vars(tool).items() if name not in _OF_AGENT}
    vars(made).update(kept)
    return made


def _check_is_tool(tool: Any) -> None:
    """Raise E75 for an object with a name that is not a tool: the model could never call it."""
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
