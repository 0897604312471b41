"""MCP servers from configuration files.

All modules except ``servers`` and ``configured`` are plain data, and import neither the SDK nor ``mcp``.
"""
