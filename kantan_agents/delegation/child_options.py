"""Options of agents for those that are delegated to, checked when the tool is made."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

import agents

from kantan_agents.agent import Agent
from kantan_agents.errors import InvalidOptionError
from kantan_agents.retrieval.options import checked_retrieval

# The file says who it is, and whoever delegates what there is to be used: a delegation only narrows.
_DECIDED = frozenset(
    {
        "sdk_agent_options",
        "name",
        "instructions",
        "tools",
        "tool_providers",
        "mcp_servers",
        "handoffs",
    }
)


def checked_child_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options.

    Raises:
        InvalidOptionError: E75, there is no such option, it is decided elsewhere, or has a wrong value.
        KantanAgentsError: What else ``Agent`` raises.
    """
    known = {
        *inspect.signature(Agent).parameters,
        *(field.name for field in dataclasses.fields(agents.Agent)),
    }
    for option in options:
        if option in _DECIDED:
            reason = "is decided by the file of the agent and by who delegates"
            raise InvalidOptionError(option=option, reason=reason)
        if option not in known:
            raise InvalidOptionError(option=option, reason="task_tool and Agent have no such option")
    # A trial: what an agent refuses is the programmer's to hear, not a model's. Of the tools there are nobody
    # knows yet, so the names that a retrieval shows always cannot be tried.
    checked_retrieval(options.get("tool_retrieval"))
    tried = {name: value for name, value in options.items() if name != "tool_retrieval"}
    Agent("trial", "Try the options.", tool_providers=None, **tried)
    return dict(options)
