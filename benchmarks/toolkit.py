"""Measures Grep and Glob in a large repository, against ripgrep if it is installed.

    python benchmarks/toolkit.py [--quick] [--repeats 5]

Each row is the median of some calls, after one that warms up the cache of the file system. ``lag`` is the
longest time that the event loop did not run in one of the calls, which work in a thread. Both sides have the
same matches, but Grep ends with the first 200 files; ripgrep is started anew for each search, as a tool that
calls it would.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from agents import FunctionTool
from agents.tool_context import ToolContext
from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks import measure
from benchmarks.measure import Rows, environment
from kantan_agents.toolkit import toolkit

FILES_PER_FOLDER = 100
FOLDERS = 1_000
QUICK_FOLDERS = 20
LINES = 20
WIDTHS = (44, 12, 12, 8, 10)


@attrs.frozen
class Row:
    """One search.

    Attributes:
        name: What it shows.
        tool: Name of the tool.
        arguments: The arguments of the call.
        ripgrep: The arguments of ripgrep for the same search.
    """

    name: str
    tool: str
    arguments: dict[str, Any]
    ripgrep: tuple[str, ...]


ROWS = (
    Row("no match", "Grep", {"pattern": "nothing here"}, ("-l", "nothing here")),
    Row("a regular expression without a match", "Grep", {"pattern": r"x \+ [2-9]$"}, ("-l", r"x \+ [2-9]$")),
    Row("200 files with a match", "Grep", {"pattern": "needle7$"}, ("-l", "needle7$")),
    Row(
        "one hundredth of the files",
        "Grep",
        {"pattern": "return", "glob": "*_7.py", "output_mode": "count", "head_limit": 2_000},
        ("-c", "return", "-g", "*_7.py"),
    ),
    Row(
        "paths: one hundredth of the files", "Glob", {"pattern": "**/*_7.py"}, ("--files", "-g", "**/*_7.py")
    ),
)


def make_repository(root: Path, folders: int) -> None:
    """Write Python files of about a thousand bytes."""
    body = "def function(x):\n    return x + 1\n\n\n" * LINES
    for folder in range(folders):
        path = root / f"package_{folder // 50}" / f"module_{folder}"
        path.mkdir(parents=True)
        for number in range(FILES_PER_FOLDER):
            (path / f"part_{number}.py").write_text(f"import os\n\n\n{body}needle{number}\n")
    (root / ".gitignore").write_text("build/\n*.pyc\n.venv/\n")


async def call(tool: FunctionTool, arguments: dict[str, Any]) -> str:
    """Call a tool as the SDK does."""
    text = json.dumps(arguments)
    context: ToolContext[Any] = ToolContext(
        context=None, tool_name=tool.name, tool_call_id="call", tool_arguments=text
    )
    return str(await tool.on_invoke_tool(context, text))


async def measured(search: Callable[[], Awaitable[object]], repeats: int) -> tuple[float, float]:
    """Return the median seconds of a search, and the longest time in which the event loop did not run."""
    seconds, lags = [], [0.0]

    async def watch() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - start - 0.001)

    await search()
    watching = asyncio.create_task(watch())
    for _ in range(repeats):
        start = time.perf_counter()
        await search()
        seconds.append(time.perf_counter() - start)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    return float(np.median(seconds)), max(lags)


async def with_ripgrep(root: Path, arguments: tuple[str, ...]) -> None:
    """Run ripgrep, and read its answer."""
    command = ["rg", "--no-config", "--hidden", "--no-require-git", *arguments, "."]
    process = await asyncio.create_subprocess_exec(*command, cwd=root, stdout=subprocess.PIPE)
    await process.communicate()


async def compare(root: Path, repeats: int, rows: Rows) -> None:
    """Measure and print each row."""
    tools = {tool.name: tool for tool in toolkit(root)}
    for row in ROWS:
        seconds, lag = await measured(lambda row=row: call(tools[row.tool], row.arguments), repeats)  # type: ignore[misc]
        others = ("-", "-")
        if shutil.which("rg"):
            other, _ = await measured(lambda row=row: with_ripgrep(root, row.ripgrep), repeats)  # type: ignore[misc]
            others = (f"{other * 1000:,.0f} ms", f"{seconds / other:.1f}")
        rows.row(f"{row.tool}: {row.name}", f"{seconds * 1000:,.0f} ms", *others, f"{lag * 1000:.0f} ms")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a small repository")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    folders = QUICK_FOLDERS if options.quick else FOLDERS
    repeats = 1 if measure.shortest else options.repeats
    console = Console(width=100)
    console.print(environment("google-re2"), highlight=False)
    console.print(f"{folders * FILES_PER_FOLDER:,} files", highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        make_repository(Path(folder), folders)
        rows = Rows(console, "search", "here", "ripgrep", "ratio", "lag", widths=WIDTHS)
        asyncio.run(compare(Path(folder), repeats, rows))


if __name__ == "__main__":
    main()
