"""``kantan-agents mcp``: the MCP servers of configuration files."""
