"""A real MCP server for the tests: ``python mcp_server.py stdio`` or ``... http PORT``.

Every call is written to the file in ``CALLS``, so that a test sees what was really executed.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import mcp.server

try:
    make_server: Any = mcp.server.MCPServer
except AttributeError:  # mcp 1.x
    make_server = importlib.import_module("mcp.server.fastmcp").FastMCP

server = make_server("files")


def _log(line: str) -> None:
    with Path(os.environ["CALLS"]).open("a", encoding="utf-8") as log:
        log.write(f"{line}\n")


def read(path: str, limit: int = 10) -> str:
    """Read a file."""
    _log(f"read {path} {limit}")
    return f"content of {path}"


def delete(path: str) -> str:
    """Delete a file."""
    _log(f"delete {path}")
    return f"deleted {path}"


for function in (read, delete):
    server.tool()(function)

if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
