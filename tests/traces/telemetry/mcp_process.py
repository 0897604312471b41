"""A real MCP server: its tool says in which trace the call arrived."""

from __future__ import annotations

from mcp.server import MCPServer
from opentelemetry import trace

server = MCPServer("traced")


@server.tool()
def where() -> str:
    """Return the trace of this call."""
    return format(trace.get_current_span().get_span_context().trace_id, "032x")


if __name__ == "__main__":
    server.run()
