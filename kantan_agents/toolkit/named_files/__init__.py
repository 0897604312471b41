"""Files of a project that the configurations of git and MCP servers name."""
