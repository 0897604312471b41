"""The files of a project that configurations name: those of git and of MCP servers."""
