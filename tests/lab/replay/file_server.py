"""An MCP server with one tool; it writes its calls into the file that is its first argument."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    try:
        make: Any = importlib.import_module("mcp.server.mcpserver").MCPServer
    except ModuleNotFoundError:
        make = importlib.import_module("mcp.server.fastmcp").FastMCP
    server = make("files")

    @server.tool()  # type: ignore[untyped-decorator, unused-ignore]
    def read(path: str) -> str:
        """Read a file."""
        with Path(sys.argv[1]).open("a") as log:
            log.write(f"{path}\n")
        return f"content of {path}"

    server.run()


main()
