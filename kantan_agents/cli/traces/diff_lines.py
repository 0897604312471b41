"""Shows the lines of a diff."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from kantan_agents.cli.terminal.console import LABEL, plain
from kantan_agents.cli.traces.span_tree import hanging

_STYLES = {"-": "red", "+": "green"}


def diff_lines(console: Console, diff: str, indent: str, width: int | None) -> Iterator[Text]:
    """Yield a diff's lines, wrapped with the same indent."""
    for line in diff.split("\n") if diff else ():
        # A control character must not let content imitate a line of the diff.
        sign, rest = line[:1], line[1:]
        is_head = line.startswith(("--- ", "+++ ", "@@ "))
        style = LABEL if is_head else _STYLES.get(sign, "")
        shown = plain(rest.replace("\t", "    "), style)
        first = Text.assemble(indent, (sign, style))
        yield from hanging(console, first, Text(" " * first.cell_len), shown, width)
