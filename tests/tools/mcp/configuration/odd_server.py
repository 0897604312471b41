"""A real MCP server that misbehaves as asked: ``python odd_server.py MODE FOLDER``.

It appends what it does to ``FOLDER/log``: a line for each start and call.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import sys
import time
from pathlib import Path
from typing import Any

MODE, FOLDER = sys.argv[1], Path(sys.argv[2])
FLOOD = 8_000_000  # bytes; a pipe holds 64 KiB


def log(line: str) -> None:
    with (FOLDER / "log").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def wait_for(name: str) -> None:
    while not (FOLDER / name).exists():
        time.sleep(0.01)


def read(path: str) -> str:
    """Read a file."""
    log(f"read {path}")
    return f"{MODE}: content of {path}"


def environment() -> str:
    """Return the environment and the working directory as JSON."""
    return json.dumps({"env": dict(os.environ), "cwd": str(Path.cwd()), "args": sys.argv[3:]})


def die() -> str:
    """End in the middle of a call."""
    log("die")
    os._exit(1)


def late() -> str:
    """Answer when the file ``go`` exists."""
    log("late")
    wait_for("go")
    return "too late"


def flood() -> str:
    """Write much to standard error, then answer."""
    sys.stderr.write("x" * FLOOD)
    sys.stderr.write("\nthe last line\n")
    sys.stderr.flush()
    return "flooded"


def today() -> str:
    """Return the notes of today."""
    return "Buy milk."


def speak_nonsense() -> None:
    """Write lines that are not messages, until nobody listens any more or the file ``go`` exists."""
    for line in ("Hello!", "{", '{"jsonrpc": "2.0"}', "[1, 2", "\x00\xff", '{"id": 1, "result": []}'):
        sys.stdout.buffer.write(line.encode("latin-1", "replace") + b"\n")
        sys.stdout.buffer.flush()
    while not (FOLDER / "go").exists():
        readable, _, _ = select.select([sys.stdin], [], [], 0.01)
        if readable and not os.read(0, 65_536):
            return


if __name__ == "__main__":
    log(f"started {os.getpid()}")
    if MODE == "nonsense":
        speak_nonsense()
        sys.exit()
    if MODE == "silent":
        sys.stdin.read()
        sys.exit()
    if MODE == "broken":
        print(f"cannot start with {os.environ.get('API_TOKEN')}", file=sys.stderr)
        sys.exit(3)
    if MODE == "slow":
        wait_for("go")
    if MODE == "noisy":
        flood()
    import mcp.server

    make: Any = getattr(mcp.server, "MCPServer", None)
    if make is None:  # mcp 1.x
        make = importlib.import_module("mcp.server.fastmcp").FastMCP
    server = make(MODE)
    for function in (read, environment, die, late, flood):
        server.tool()(function)
    server.resource("notes://today")(today)
    server.prompt()(today)
    if MODE in ("http", "sse"):
        transport = "streamable-http" if MODE == "http" else "sse"
        server.run(transport, host="127.0.0.1", port=int(sys.argv[3]))
    else:
        server.run("stdio")
