"""Tools: listed, guarded by the rules, contributed by installed packages, found, served by MCP and typed."""
