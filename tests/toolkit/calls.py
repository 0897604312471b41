"""Calls of tools without a model, and a look at the processes of the system."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from agents import FunctionTool


async def call(tool: FunctionTool, /, **arguments: Any) -> str:
    """Call a tool as the SDK does, outside of a run."""
    return str(await tool.on_invoke_tool(None, json.dumps(arguments)))  # type: ignore[arg-type]


def body(result: str) -> str:
    """Return the output in a result of ``Bash``, without the line of the library."""
    return result.partition("\n")[2]


def processes_with(mark: str) -> list[str]:
    """Return the command lines of this system that contain a text, apart from those of the tests."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if mark in line:
                found.append(line)
    return found


async def until(condition: Callable[[], object]) -> None:
    """Wait until something holds."""
    with anyio.fail_after(120):
        while not condition():  # noqa: ASYNC110 - a process makes it true
            await anyio.sleep(0.01)
