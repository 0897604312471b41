"""An MCP server in this process that offers tools of any names, and fails on request."""

from __future__ import annotations

from typing import Any

import mcp.types
from agents.mcp import MCPServer


class Offering(MCPServer):
    """A server that offers tools with one parameter, and remembers which were called.

    Attributes:
        called: Names of the tools that were called.
        fails: Whether listing its tools fails.
    """

    def __init__(self, name: str, *tools: str, **options: Any) -> None:
        super().__init__(**options)
        self._name = name
        self._tools = tools
        self.called: list[str] = []
        self.fails = False

    @property
    def name(self) -> str:
        return self._name

    async def connect(self) -> None:
        """Nothing to connect."""

    async def cleanup(self) -> None:
        """Nothing to clean up."""

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> Any:
        if self.fails:
            raise RuntimeError("out of order")
        schema = {"type": "object", "properties": {"value": {"type": "string"}}}
        return [mcp.types.Tool.model_validate({"name": name, "inputSchema": schema}) for name in self._tools]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
        self.called.append(tool_name)
        return mcp.types.CallToolResult(content=[mcp.types.TextContent(type="text", text=self._name)])

    async def list_prompts(self) -> Any:
        raise NotImplementedError

    async def get_prompt(self, name: str, arguments: Any = None) -> Any:
        raise NotImplementedError
