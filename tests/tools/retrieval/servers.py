"""An MCP server in this process, for the tests of retrieval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents.mcp import MCPServer
from mcp.types import CallToolResult, GetPromptResult, ListPromptsResult, TextContent, Tool


class Server(MCPServer):
    """An MCP server with tools of the given names; a test may change them.

    Attributes:
        tools: Names and descriptions.
        calls: Names of the tools that were called.
        withdraws_called: Whether a tool can be called only once.
    """

    def __init__(self, name: str, tools: Iterable[str] | dict[str, str], **options: Any) -> None:
        super().__init__(**options)
        self._name = name
        self.tools: dict[str, str] = tools if isinstance(tools, dict) else dict.fromkeys(tools, "")
        self.calls: list[str] = []
        self.withdraws_called = False

    @property
    def name(self) -> str:
        return self._name

    async def connect(self) -> None:
        """There is nothing to connect to."""

    async def cleanup(self) -> None:
        """There is nothing to clean up."""

    async def list_tools(self, *_: Any, **__: Any) -> list[Tool]:
        schema = {"type": "object", "properties": {}}
        return [
            Tool.model_validate({"name": name, "description": text, "inputSchema": schema})
            for name, text in self.tools.items()
        ]

    async def call_tool(self, tool_name: str, *_: Any, **__: Any) -> CallToolResult:
        self.calls.append(tool_name)
        if self.withdraws_called:
            del self.tools[tool_name]
        return CallToolResult(content=[TextContent(type="text", text=f"{self._name} did {tool_name}")])

    async def list_prompts(self) -> ListPromptsResult:
        return ListPromptsResult(prompts=[])

    async def get_prompt(self, name: str, arguments: Any = None) -> GetPromptResult:
        return GetPromptResult(messages=[])
