"""The tools that a run can reach, for names in rules and middleware."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import agents
import attrs
from agents import Handoff, HostedMCPTool, RunContextWrapper, Tool

from kantan_agents.support.log import get_logger
from kantan_agents.support.nearest import nearest
from kantan_agents.tool_rules import ToolFacts
from kantan_agents.tool_rules.globs import is_glob, literal_beginning
from kantan_agents.tool_rules.names import NamePatterns
from kantan_agents.tool_rules.origins import SERVER_PREFIX
from kantan_agents.tools.facts import facts_of_listed, label_of, servers_of
from kantan_agents.tools.guards.approvals import tools_of_hosted
from kantan_agents.tools.mcp.served import servers_away
from kantan_agents.tools.server_names import (
    Surroundings,
    hosted_origin,
    names_of_server,
    server_of,
    server_prefixes,
)

_log = get_logger("kantan_agents.tools")


@attrs.frozen(eq=False)
class Reach:
    """The tools that agents can reach by handoffs and agents as tools.

    ``unlisted`` has name prefixes of unknown tools. ``is_complete`` is false if a handoff decides at run
    time, tools are unknown, or a function filters them. ``lacks_servers``: a failing server hides tools.
    """

    agents: list[agents.Agent[Any]]
    names: list[frozenset[str]]
    served: list[ToolFacts]
    servers: frozenset[str]
    unlisted: tuple[str, ...]
    is_complete: bool
    knows_agents: bool
    lacks_servers: bool

    def all_names(self) -> Iterator[str]:
        """Yield the names of all tools and servers."""
        for names in self.names:
            yield from names
        for tool in self.served:
            yield from tool.names
        yield from self._names_of_servers()

    def _names_of_servers(self) -> Iterator[str]:
        return (name for server in self.servers for name in names_of_server(server))

    def names_absent_server(self, entry: str) -> bool:
        """Return whether an entry names an MCP server, or its tool, that no agent has."""
        if not self.knows_agents or not entry.startswith(SERVER_PREFIX):
            return False
        beginning = literal_beginning(entry) if is_glob(entry) else f"{entry}__"
        prefixes = tuple(prefix for server in self.servers for prefix in server_prefixes(server))
        may_go_on = is_glob(entry) and any(prefix.startswith(beginning) for prefix in prefixes)
        return not may_go_on and not beginning.startswith(prefixes)

    def nearest_server(self, entry: str) -> str | None:
        """Return the server that an entry probably means, if any."""
        server = literal_beginning(entry)[len(SERVER_PREFIX) :].partition("__")[0]
        known = {name[len(SERVER_PREFIX) :] for name in self._names_of_servers()}
        found = nearest(server, known)  # without the common prefix
        return None if found is None else f"{SERVER_PREFIX}{found}"

    def tools_named(self, name: str) -> list[ToolFacts]:
        """Return the tools that a name or pattern matches."""
        pattern = NamePatterns([name])
        local = (facts_of_listed(tool) for agent in self.agents for tool in _local_tools(agent))
        return [tool for tool in (*local, *self.served) if any(map(pattern.covering, tool.names))]

    def served_as(self, entry: str) -> Iterator[ToolFacts]:
        """Yield the servers' tools that an entry covers, even without granting."""
        pattern = NamePatterns([entry])
        return (tool for tool in self.served if any(map(pattern.covering, tool.names)))

    def may_be_unlisted(self, entry: str) -> bool:
        """Return whether an entry may be a tool that a server does not list."""
        return any(entry.startswith(beginning) for beginning in self.unlisted)

    def covers(self, entry: str, *, grants: bool = False) -> bool:
        """Return whether an entry names a tool; ``grants``: as an entry of ``allow``."""
        if any(entry in names for names in self.names):
            return True
        pattern = NamePatterns([entry])
        if is_glob(entry) and any(pattern.covering(name) for names in self.names for name in names):
            return True
        if any(
            pattern.covering(name, tool.origin if grants else None)
            for tool in self.served
            for name in tool.names
        ):
            return True
        around = Surroundings(servers=self.servers)
        return any(
            pattern.covering(name, hosted_origin(server, None, around) if grants else None)
            for server in self.servers
            for name in names_of_server(server)
        )


async def reach_of(
    starts: Iterable[agents.Agent[Any]],
    wrapper: RunContextWrapper[Any],
    *,
    listed_by: Any = None,
    listed: Iterable[Tool] = (),
    lists_servers: bool = True,
) -> Reach:
    """Return the tools that agents can reach; ``lists_servers`` lists the other agents' servers."""
    reached: list[agents.Agent[Any]] = []
    names: list[frozenset[str]] = []
    served: list[ToolFacts] = []
    servers: set[str] = set()
    unlisted: list[str] = []
    is_complete = knows_agents = True
    lacks_servers, away_from_listed = False, servers_away.get()
    for agent in _agents_from(starts):
        if agent is None:
            is_complete = knows_agents = False
            continue
        reached.append(agent)
        names.append(_local_names(agent))
        offered: list[Tool] = [*agent.tools, *getattr(agent, "served_tools", ())]
        if agent is listed_by:
            offered += listed
            lacks_servers = lacks_servers or bool(agent.mcp_servers and away_from_listed)
        elif agent.mcp_servers:
            more = await _served_to(agent, wrapper) if lists_servers else None
            is_complete = is_complete and more is not None
            lacks_servers = lacks_servers or (lists_servers and (more is None or bool(servers_away.get())))
            offered += more or ()
        if any(callable(getattr(server, "tool_filter", None)) for server in agent.mcp_servers):
            is_complete = False  # in another run, the filter may show other tools
        listed_servers = servers_of(offered)
        servers |= listed_servers | {server.name for server in agent.mcp_servers}
        for server in agent.mcp_servers:  # one that lists nothing may do so later
            unlisted += () if server.name in listed_servers else server_prefixes(server.name)
        served += [facts_of_listed(tool) for tool in offered if server_of(tool) is not None]
        for tool in offered:
            if isinstance(tool, HostedMCPTool):
                known = tools_of_hosted(tool)
                served += known
                if not known:
                    unlisted += server_prefixes(label_of(tool))
    servers_away.set(away_from_listed)  # the servers of other agents have been listed since
    is_complete = is_complete and not unlisted and not lacks_servers
    return Reach(
        reached,
        names,
        served,
        frozenset(servers),
        tuple(unlisted),
        is_complete=is_complete,
        knows_agents=knows_agents,
        lacks_servers=lacks_servers,
    )


def _local_names(agent: agents.Agent[Any]) -> frozenset[str]:
    names: frozenset[str] | None = getattr(agent, "local_names", None)
    if names is None:  # a plain SDK agent that has not been guarded yet
        names = frozenset(name for tool in _local_tools(agent) for name in facts_of_listed(tool).names)
    index = getattr(agent, "tool_index", None)
    return names if index is None or index.finder is None else names | {index.finder.name}


def _local_tools(agent: agents.Agent[Any]) -> Iterator[Tool]:
    for tool in (*getattr(agent, "held_tools", ()), *agent.tools):
        if server_of(tool) is None:
            yield tool


def _agents_from(starts: Iterable[agents.Agent[Any]]) -> Iterator[agents.Agent[Any] | None]:
    waiting: list[Any] = list(starts)
    seen: set[int] = set()
    while waiting:
        agent = waiting.pop()
        if not isinstance(agent, agents.Agent):
            yield None
            continue
        if id(agent) in seen:
            continue
        seen.add(id(agent))
        yield agent
        for target in agent.handoffs:
            if isinstance(target, Handoff):
                known: Callable[[], Any] | None = getattr(target, "_agent_ref", None)
                waiting.append(known() if known is not None else None)
            else:
                waiting.append(target)
        nested = [getattr(tool, "_agent_instance", None) for tool in agent.tools]
        waiting += [one for one in nested if one is not None]


async def _served_to(agent: agents.Agent[Any], wrapper: RunContextWrapper[Any]) -> list[Tool] | None:
    servers_away.set(frozenset())
    try:
        return await agent.get_mcp_tools(wrapper)
    except Exception as error:  # noqa: BLE001 - the agent's own turn raises it, if there is one
        _log.warning("tools of MCP servers cannot be listed", agent=agent.name, error=repr(error))
        return None
