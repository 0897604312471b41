"""The known and unknown tools of MCP servers, for ``explain_tool``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from agents import HostedMCPTool, RunContextWrapper
from agents.mcp import MCPServer, MCPUtil

from kantan_agents.agent.bridge.guarded_agent import LISTED
from kantan_agents.agent.bridge.sdk_agent import SDKAgent
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import ToolFacts
from kantan_agents.tools.facts import facts_of, facts_of_listed, label_of
from kantan_agents.tools.guards.approvals import tools_of_hosted
from kantan_agents.tools.mcp.server_connections import ask_server
from kantan_agents.tools.meanings_of_names import Offers
from kantan_agents.tools.server_names import Surroundings, server_of

_log = get_logger("kantan_agents.tools")


def offers_of(agent: SDKAgent) -> Offers:
    """Return an agent's MCP servers, with the tools last listed."""
    around = Surroundings(agent.local_names, agent.server_names)
    listings: dict[str, Sequence[ToolFacts]] = vars(agent).get(LISTED, {})
    known: dict[str, list[ToolFacts]] = {}
    for tool in (*agent.served_tools, *agent.tools):
        name = server_of(tool)
        if name is not None:
            known.setdefault(name, []).append(facts_of_listed(tool, around))
    unlisted: dict[str, str] = {}
    for server in agent.mcp_servers:
        listed = listings.get(server.name) or _cached_tools(server, around)
        if listed:
            known.setdefault(server.name, []).extend(listed)
        else:
            unlisted[server.name] = (
                f"MCP server {server.name!r} has listed no tools so far; connect it and await "
                "explain_tool_async to know them"
            )
    hosted = [tool for tool in agent.tools if isinstance(tool, HostedMCPTool)]
    for tool in hosted:
        label, tools = label_of(tool), tools_of_hosted(tool)
        if tools:
            known.setdefault(label, []).extend(tools)
        else:
            unlisted[label] = f"hosted MCP server {label!r} has no allowed_tools, so its tools are unknown"
    return Offers(known, unlisted, frozenset(map(label_of, hosted)), around)


async def list_servers(agent: SDKAgent, context: Any) -> None:
    """List an agent's MCP tools for ``offers_of``; log failing servers.

    Tool filters may use ``context``.
    """
    wrapper: RunContextWrapper[Any] = RunContextWrapper(context)
    around = Surroundings(agent.local_names, agent.server_names)
    for server in agent.mcp_servers:
        try:
            ask = partial(server.list_tools, wrapper, agent)
            # A question about rules starts no server.
            is_new = getattr(server, "session", agent) is None
            tools = await (ask() if is_new else ask_server(server, ask, agent.name))
        except Exception as error:  # noqa: BLE001 - the answer then reports the tools as unknown
            _log.warning("tools of an MCP server cannot be listed", server=server.name, error=repr(error))
            continue
        vars(agent).setdefault(LISTED, {})[server.name] = _facts(server, tools, around)


def _cached_tools(server: MCPServer, around: Surroundings) -> Sequence[ToolFacts]:
    chosen: Any = getattr(server, "tool_filter", None)
    allowed, blocked = (
        (chosen.get("allowed_tool_names"), chosen.get("blocked_tool_names") or ())
        if isinstance(chosen, dict)
        else (None, ())
    )
    tools = [tool for tool in server.cached_tools or () if allowed is None or tool.name in allowed]
    return _facts(server, (tool for tool in tools if tool.name not in blocked), around)


def _facts(server: MCPServer, tools: Iterable[Any], around: Surroundings) -> list[ToolFacts]:
    return [
        facts_of(MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=False), around)
        for tool in tools
    ]
