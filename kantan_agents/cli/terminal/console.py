"""The console of all views, and safe text."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr, redirect_stdout

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kantan_agents.cli.terminal.plain import printable, whole

ACCENT = "cyan"
LABEL = "dim"
STRONG = "bold"
GOOD = "bold green"
BAD = "bold red"
NOTICE = "bold yellow"

MAX_WIDTH = 100


def terminal(*, stderr: bool = False) -> Console:
    """Return a console with readable line lengths."""
    console = wide_terminal(stderr=stderr)
    console.width = min(console.width, MAX_WIDTH)
    return console


def wide_terminal(*, stderr: bool = False) -> Console:
    """Return a console for rows, as wide as the terminal."""
    return Console(markup=False, emoji=False, highlight=False, stderr=stderr)


def working(console: Console, what: str) -> AbstractContextManager[object]:
    """Show a spinner, only on a real terminal: in a build log, each frame would be a line."""
    return console.status(what) if console.file.isatty() else nullcontext()


@contextmanager
def suppress_output() -> Iterator[None]:
    """Discard all output in the block."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


def is_terminal() -> bool:
    """Return whether both streams are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def plain(value: object, style: str = "") -> Text:
    """Return text without markup and control characters."""
    if isinstance(value, Text):
        return value
    return Text(whole(printable(str(value))), style=style, overflow="fold")


def indented(*parts: RenderableType) -> RenderableType:
    """Return ``parts`` below each other, indented."""
    return Padding(Group(*parts), (0, 0, 0, 3), expand=False)


def pairs(entries: Iterable[tuple[object, object]], label_style: str = LABEL) -> Table:
    """Return labels and values in two columns."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in entries:
        table.add_row(plain(label, label_style), plain(value))
    return table
