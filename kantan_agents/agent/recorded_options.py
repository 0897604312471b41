"""The options of an agent that shape its requests, as they are recorded with each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from kantan_agents.agent.bridge.captured.definitions import encode

# The prompt, the tools and the settings are recorded with each call; the others say nothing about requests.
_NAMED: Final = ("handoffs", "mcp_servers", "middleware")
_PLAIN: Final = (
    "allow_env",
    "history",
    "output_dest",
    "output_mode",
    "output_repairs",
    "strict",
    "tool_use_behavior",
    "reset_tool_choice",
)
_known: WeakKeyDictionary[Any, msgspec.Raw] = WeakKeyDictionary()


def recorded_options(agent: Any, given: Mapping[str, Any]) -> msgspec.Raw:
    """Return the options as JSON; computed once for each agent.

    Args:
        agent: The Agent.
        given: Its options by name.
    """
    known = _known.get(agent)
    if known is None:
        known = _known[agent] = msgspec.Raw(encode(_data(given)))
    return known


def _data(given: Mapping[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {
        name: given[name] for name in _PLAIN if isinstance(given.get(name), (str, int, bool))
    }
    data |= {name: [_name_of(one) for one in given[name]] for name in _NAMED if given.get(name)}
    for name in ("model", "output_type"):
        value = given.get(name)
        if value is not None:
            data[name] = value if isinstance(value, str) else getattr(value, "__name__", type(value).__name__)
    if given.get("tool_retrieval") is not None:
        data["tool_retrieval"] = repr(given["tool_retrieval"])
    return data


def _name_of(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        return value[0]  # a stage with a name
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__
