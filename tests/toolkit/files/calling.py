"""Calls the tools of a toolkit as the SDK does, shared by the tests of the file tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from kantan_agents.toolkit import toolkit


class Tools:
    """All file tools of a folder: ``await tools("Read", file_path="a.txt")``."""

    def __init__(self, root: Path, **options: Any) -> None:
        options = {"write": True, "approval": False, **options}
        self.tools: dict[str, FunctionTool] = {tool.name: tool for tool in toolkit(root, **options)}

    async def __call__(self, name: str, **arguments: Any) -> str:
        """Call a tool."""
        text = json.dumps(arguments)
        tool = self.tools[name]
        context: ToolContext[Any] = ToolContext(
            context=None, tool_name=name, tool_call_id="call", tool_arguments=text
        )
        return str(await tool.on_invoke_tool(context, text))


def snapshot(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    """Return everything below a folder: modes, bytes and targets of links."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        content: bytes | str = "folder"
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, content)
    return found
