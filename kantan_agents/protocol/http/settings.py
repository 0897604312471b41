"""Model settings that every API has, each under a name of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kantan_agents.errors import InvalidOptionError


def choice_of(settings: Mapping[str, Any], tools: Mapping[str, Any]) -> str | None:
    """Return ``tool_choice``: ``"auto"``, ``"none"``, ``"required"`` or the name of a tool; None if not set.

    Raises:
        InvalidOptionError: E75, there is no tool of that name, or it is a choice of what OpenAI runs.
    """
    choice = settings.get("tool_choice")
    if choice is None:
        return None
    if isinstance(choice, str) and (choice in ("auto", "none", "required") or choice in tools):
        return choice
    reason = f"must be auto, none, required or one of {', '.join(tools)}, not {choice!r}"
    raise InvalidOptionError(option="tool_choice", reason=reason[:500])


def stops_of(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return ``stop`` of ``extra_args`` under the API's name."""
    stop = (settings.get("extra_args") or {}).get("stop")
    if stop is None:
        return {}
    return {name: [stop] if isinstance(stop, str) else list(stop)}
