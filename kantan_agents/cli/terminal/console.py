"""What the views have in common: the console, the few styles, and text that stays text."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

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


def terminal() -> Console:
    """Return a console for reading: lines of a readable length, and no markup in any string.

    Rich leaves colours and the spinner out where the output is no terminal.
    """
    console = wide_terminal()
    console.width = min(console.width, MAX_WIDTH)
    return console


def wide_terminal() -> Console:
    """Return a console for rows, which may be as long as the line of the terminal is."""
    return Console(markup=False, emoji=False, highlight=False)


def working(console: Console, what: str) -> AbstractContextManager[object]:
    """Show a spinner while something takes its time.

    Only on a real terminal: where colours are forced into a file or a build log, every picture of the
    spinner would be a line.
    """
    return console.status(what) if console.file.isatty() else nullcontext()


def plain(value: object, style: str = "") -> Text:
    """Return ``value`` as text that is shown as it is; for whatever a model or a file says."""
    if isinstance(value, Text):
        return value
    return Text(whole(printable(str(value))), style=style, overflow="fold")


def indented(*parts: RenderableType) -> RenderableType:
    """Return ``parts`` under one another, set off from the headings."""
    return Padding(Group(*parts), (0, 0, 0, 3), expand=False)


def pairs(entries: Iterable[tuple[object, object]], label_style: str = LABEL) -> Table:
    """Return labels and values in two columns."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in entries:
        table.add_row(plain(label, label_style), plain(value))
    return table
