"""Finds the agents that a worker makes runs of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kantan_agents.agent import Agent
from kantan_agents.cli.terminal.failures import describe
from kantan_agents.cli.terminal.load_object import load_object
from kantan_agents.errors import InvalidOptionError

_OPTION = "MODULE:NAME"


def read_agents(names: Sequence[str]) -> list[Agent[Any]]:
    """Return the agents, each once.

    Args:
        names: ``MODULE:NAME`` of an agent, of a list or tuple of agents, or of a function without parameters
            that returns one of these.

    Raises:
        InvalidOptionError: E75, there is no such object, importing it fails, or it is something else.
    """
    agents: list[Agent[Any]] = []
    for name in names:
        for agent in _agents_of(name):
            if all(agent is not known for known in agents):
                agents.append(agent)
    return agents


def _agents_of(name: str) -> Sequence[Agent[Any]]:
    found = load_object(name, _OPTION, "app.agents:support")
    if callable(found) and not isinstance(found, Agent):
        try:
            found = found()
        except Exception as error:
            raise InvalidOptionError(option=_OPTION, reason=f"{name}: {describe(error)}") from error
    listed = found if isinstance(found, (list, tuple)) else [found]
    for agent in listed:
        if not isinstance(agent, Agent):
            reason = f"{name}: it must be an Agent or a list of agents, not {type(agent).__name__}"
            raise InvalidOptionError(option=_OPTION, reason=reason)
    if not listed:
        raise InvalidOptionError(option=_OPTION, reason=f"{name}: it is an empty list")
    return listed
