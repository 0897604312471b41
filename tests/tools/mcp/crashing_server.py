"""A real MCP server that fails on request: ``python crashing_server.py FOLDER [http PORT]``.

It writes what it does to ``FOLDER/log``, a line for each start and call. If ``FOLDER/broken`` exists, it ends
at once instead of starting.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])


def log(line: str) -> None:
    with (FOLDER / "log").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def read(path: str) -> str:
    """Read a file."""
    log(f"read {path}")
    return f"content of {path}"


def pay(amount: int) -> str:
    """Pay, and crash before the answer."""
    log(f"pay {amount}")
    os._exit(1)


def today() -> str:
    """Return the notes of today."""
    return "Buy milk."


if __name__ == "__main__":
    if (FOLDER / "broken").exists():
        log("broken")
        sys.exit(1)
    import mcp.server

    make: Any = getattr(mcp.server, "MCPServer", None)
    if make is None:  # mcp 1.x
        make = importlib.import_module("mcp.server.fastmcp").FastMCP
    server = make("files")
    for function in (read, pay):
        server.tool()(function)
    server.resource("notes://today")(today)
    server.prompt()(today)
    log(f"started {os.getpid()}")
    if sys.argv[2:3] == ["http"]:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[3]))
    else:
        server.run("stdio")
