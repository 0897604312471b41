"""Finds the agent that ``--agent MODULE:NAME`` names."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from kantan_agents.agent import Agent
from kantan_agents.cli.terminal.failures import describe
from kantan_agents.errors import InvalidOptionError

_OPTION = "--agent"


def load_agent(name: str) -> Agent[Any]:
    """Import a module, also from the current directory, and return the agent in it.

    Args:
        name: ``MODULE:NAME``, of an agent or of a function without parameters that returns one.

    Raises:
        InvalidOptionError: E75, there is no such module or name, importing it fails, or it is not one.
    """
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise _invalid(name, "it must be MODULE:NAME, such as app.agents:support")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = import_module(module_name)
        for attribute in path.split("."):
            found = getattr(found, attribute)
        agent = found if isinstance(found, Agent) or not callable(found) else found()
    except Exception as error:
        raise _invalid(name, describe(error)) from error
    if not isinstance(agent, Agent):
        raise _invalid(name, f"it must be an Agent, not {type(agent).__name__}")
    return agent


def _invalid(name: str, reason: str) -> InvalidOptionError:
    return InvalidOptionError(option=_OPTION, reason=f"{name}: {reason}")
