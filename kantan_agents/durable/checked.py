"""The agents and queues of a ``DurableRuns``, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kantan_agents.durable.engines.engine import Limits
from kantan_agents.durable.middleware import durable_of
from kantan_agents.errors import InvalidOptionError


def checked_agents(agents: Iterable[Any]) -> dict[str, Any]:
    """Return the agents by name.

    Raises:
        InvalidOptionError: E75, one has no ``Durable``, or two have one name.
    """
    found: dict[str, Any] = {}
    for agent in agents:
        if not hasattr(agent, "layers") or durable_of(agent) is None:
            name = getattr(agent, "name", agent)
            reason = f"must be agents with Durable() among their middleware; {name!r} has none"
            raise InvalidOptionError(option="agents", reason=reason)
        if agent.name in found:
            raise InvalidOptionError(option="agents", reason=f"has two agents of the name {agent.name!r}")
        found[agent.name] = agent
    return found


def checked_queues(queues: Mapping[str, Limits] | Iterable[str]) -> dict[str, Limits]:
    """Return the limits of each queue.

    Raises:
        InvalidOptionError: E75, a name or its limits are not valid.
    """
    if isinstance(queues, str):
        queues = (queues,)
    given = dict(queues) if isinstance(queues, Mapping) else {name: Limits() for name in queues}
    for name, limits in given.items():
        if not isinstance(name, str) or not name or name.startswith(("_dbos_", "kantan_agents_")):
            raise InvalidOptionError(option="queues", reason=f"{name!r} is not a name for a queue")
        if not isinstance(limits, Limits):
            raise InvalidOptionError(option="queues", reason=f"must map {name!r} to Limits, not {limits!r}")
    return given
