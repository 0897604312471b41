"""Checks tool names in middleware, once the tools of a run are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agents import RunContextWrapper, Tool

from kantan_agents.agent.bridge.reach import Reach, reach_of
from kantan_agents.core.interception import NamedTools, tool_of
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.log import get_logger
from kantan_agents.support.nearest import nearest

_CHECKED = object()
_MOST_SERVERS = 10
_log = get_logger("kantan_agents.middleware")


async def check_named_tools(
    run: Run,
    wrapper: RunContextWrapper[Any],
    named: Iterable[NamedTools],
    *,
    listed_by: Any = None,
    listed: Iterable[Tool] = (),
) -> None:
    """Raise E75 if a middleware names a tool that no agent has; once for each run."""
    checked: set[Any] = run.state.setdefault(_CHECKED, set())
    waiting = [one for one in named if one.unmatched and one not in checked]
    if not waiting:
        return
    owners = [run.agent, *(agent for one in waiting for agent in one.agents)]
    sdk_agents = (getattr(owner, "sdk_agent", None) for owner in owners)
    starts = [agent for agent in sdk_agents if agent is not None]
    starts += list(_agents_above(run))
    if not starts:
        return
    reach = await reach_of(starts, wrapper, listed_by=listed_by, listed=listed)
    for one in waiting:
        one.match(reach.all_names())
        missing = [entry for entry in one.unmatched if not reach.may_be_unlisted(entry)]
        wrong = [entry for entry in missing if reach.is_complete or reach.names_absent_server(tool_of(entry))]
        if wrong:
            problems = "; ".join(describe_unknown(entry, run.agent.name, reach) for entry in wrong)
            raise InvalidOptionError(option=one.option, reason=problems)
        checked.add(one)  # listing the servers of other agents in every turn would cost too much
        if missing:
            _log.warning("names of tools cannot be checked", option=one.option, names=missing)


def describe_unknown(entry: str, agent: str, reach: Reach) -> str:
    """Return a sentence about an unknown name, with the nearest one."""
    name = tool_of(entry)
    near = near_name(name, reach)
    what, otherwise = "tool", "it can reach no tool with a similar name"
    if reach.names_absent_server(name):
        what, otherwise = "MCP server", f"the servers it can reach: {_listed(reach.servers)}"
    hint = f"the nearest name is {near!r}" if near else otherwise
    return f"{entry!r} names no {what} of agent {agent!r}; {hint}"


def near_name(name: str, reach: Reach) -> str | None:
    """Return the most similar tool or server name, if any."""
    if reach.names_absent_server(name):
        return reach.nearest_server(name)
    return nearest(name, set(reach.all_names()))


def _listed(servers: Iterable[str]) -> str:
    shown = sorted(servers)
    return (
        ", ".join([*map(repr, shown[:_MOST_SERVERS]), *(["..."] if shown[_MOST_SERVERS:] else [])]) or "none"
    )


def _agents_above(run: Run) -> Iterator[Any]:
    ceiling = getattr(run.delegation, "ceiling", None)
    return iter(ceiling.agents_above if ceiling is not None else ())
