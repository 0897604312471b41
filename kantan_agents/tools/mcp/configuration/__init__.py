"""MCP servers from configuration files.

Everything but ``servers`` and ``configured`` is plain data, and imports neither the SDK nor ``mcp``.
"""
