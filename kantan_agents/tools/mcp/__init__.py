"""MCP servers: how a run lives with one that fails, and what a server offers besides tools."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kantan_agents.tools.mcp.configuration.configured import ConfiguredServers, configured_servers
    from kantan_agents.tools.mcp.prompts import MCPPrompt, mcp_prompt
    from kantan_agents.tools.mcp.resources import resource_text, with_resources

__all__ = [
    "ConfiguredServers",
    "MCPPrompt",
    "configured_servers",
    "mcp_prompt",
    "resource_text",
    "with_resources",
]

# The configuration is read without the SDK, which these modules need.
_HOMES = {
    "ConfiguredServers": "configuration.configured",
    "MCPPrompt": "prompts",
    "configured_servers": "configuration.configured",
    "mcp_prompt": "prompts",
    "resource_text": "resources",
    "with_resources": "resources",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
