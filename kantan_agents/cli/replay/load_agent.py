"""Loads the agent of ``--agent MODULE:NAME``."""

from __future__ import annotations

from typing import Any

from kantan_agents.agent import Agent
from kantan_agents.cli.terminal.failures import describe
from kantan_agents.cli.terminal.load_object import load_object
from kantan_agents.errors import InvalidOptionError

_OPTION = "--agent"


def load_agent(name: str) -> Agent[Any]:
    """Return the agent ``MODULE:NAME``, or a function's result."""
    found = load_object(name, _OPTION, "app.agents:support")
    try:
        agent = found if isinstance(found, Agent) or not callable(found) else found()
    except Exception as error:
        raise _invalid(name, describe(error)) from error
    if not isinstance(agent, Agent):
        raise _invalid(name, f"it must be an Agent, not {type(agent).__name__}")
    return agent


def _invalid(name: str, reason: str) -> InvalidOptionError:
    return InvalidOptionError(option=_OPTION, reason=f"{name}: {reason}")
