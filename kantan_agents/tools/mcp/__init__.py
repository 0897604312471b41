"""MCP servers: how a run handles one that fails, and what a server offers in addition to tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.tools.mcp.configuration.configured": ("ConfiguredServers", "configured_servers"),
        "kantan_agents.tools.mcp.prompts": ("MCPPrompt", "mcp_prompt"),
        "kantan_agents.tools.mcp.resources": ("resource_text", "with_resources"),
    },
)
