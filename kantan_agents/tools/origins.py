"""The origins of an agent's tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agents import HostedMCPTool

from kantan_agents.tools.providers.entry_points import ToolProvider

OWN = "own"

_NAMES = 10
_ORIGINS = 10
_LONGEST = 60


def tool_origins(
    tools: Iterable[Any], providers: Iterable[ToolProvider], mcp_servers: Iterable[Any]
) -> dict[str, str]:
    """Return names by origin, such as ``{"acme (acme-tools 1.2)": "search, send"}``, of bounded length."""
    brought = {id(tool): _short(f"{one.name} ({one.declared})") for one in providers for tool in one.tools}
    by_origin: dict[str, list[str]] = {}
    for tool in tools:
        if isinstance(tool, HostedMCPTool) and id(tool) not in brought:
            by_origin.setdefault(_short(f"MCP server {tool.tool_config.get('server_label')}"), [])
        else:
            by_origin.setdefault(brought.get(id(tool), OWN), []).append(_short(str(tool.name)))
    for server in mcp_servers:
        by_origin.setdefault(_short(f"MCP server {getattr(server, 'name', server)}"), [])
    shown = {origin: _listed(names) for origin, names in list(by_origin.items())[:_ORIGINS]}
    if len(by_origin) > _ORIGINS:
        shown[f"{len(by_origin) - _ORIGINS} more"] = "not listed"
    return shown


def origins_text(origins: dict[str, str]) -> str:
    """Empty without tools."""
    return "; ".join(f"{origin}: {names}" for origin, names in origins.items())


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "its tools"
    more = f", and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
