"""MCP servers: how a run lives with one that fails, and what a server offers besides tools."""

from __future__ import annotations

from kantan_agents.mcp.prompts import MCPPrompt, mcp_prompt
from kantan_agents.mcp.resources import resource_text, with_resources

__all__ = ["MCPPrompt", "mcp_prompt", "resource_text", "with_resources"]
