"""Records as rows: a table where the line is long enough for one, else a few lines for each record."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

import attrs
from rich.console import Console
from rich.text import Text

from kantan_agents.cli.terminal.console import LABEL, plain
from kantan_agents.cli.terminal.plain import MAX_LINE, one_line

GAP = "  "
_DOTS = "..."
NARROWEST_REST = 24
LONGEST_REST = 80


@attrs.frozen
class Column:
    """A column.

    Attributes:
        label: What stands above it.
        right: Whether its cells end at the same place, as numbers do.
        longest: How wide it may get in a table; in a pipe a limit for texts only.
        aligned: How far in a pipe it pushes the columns behind it; a longer cell does so in its own row only.
        named: Whether its cells need the label beside them where there is no table.
        own_line: Whether its cells, texts, have a line of their own there.
        rest: Whether it takes what the others leave of a line; the last column, or none.
    """

    label: str
    right: bool = False
    longest: int | None = None
    aligned: int | None = None
    named: bool = False
    own_line: bool = False
    rest: bool = False


def line_width(console: Console) -> int | None:
    """Return how long a line may be; None in a pipe or a file, where a record stays on its line.

    ``COLUMNS`` counts in any case, rich reads it.
    """
    if console.file.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return max(console.width, 1)
    return None


def print_lines(console: Console, lines: Iterable[Text]) -> None:
    """Print ``lines`` as they are: long ones are the terminal's to break."""
    for line in lines:
        console.print(line, soft_wrap=True)


def cell(value: object, style: str = "", *, longest: int | None = None) -> Text:
    """Return ``value`` on one line, cut to ``longest`` columns of the terminal."""
    # A text may be megabytes long.
    text = plain(one_line(str(value)[: 4 * MAX_LINE]), style)
    return text if longest is None else cut(text, longest)


def cut(text: Text, cells: int) -> Text:
    """Return ``text``, or its beginning and three dots if it needs more than ``cells`` columns."""
    if text.cell_len <= cells:
        return text
    beginning = text.copy()
    beginning.truncate(max(cells - len(_DOTS), 0))
    beginning.rstrip()
    return beginning.append(_DOTS[:cells])


def row_lines(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int | None) -> Iterator[Text]:
    """Yield a table with a head, or for each row a few lines if that would need more than ``width``.

    Columns that are empty everywhere are left out.
    """
    used = [index for index in range(len(columns)) if any(row[index].plain for row in rows)]
    columns = [columns[index] for index in used]
    rows = [[row[index] for index in used] for row in rows]
    widths = [
        max([len(column.label), *(row[index].cell_len for row in rows)])
        for index, column in enumerate(columns)
    ]
    widths = [
        min(natural, _longest(column, width) or natural)
        for natural, column in zip(widths, columns, strict=True)
    ]
    fixed = sum(widths) + len(GAP) * (len(widths) - 1)
    if width is None or fixed <= width:
        yield from _table(columns, rows, widths, in_pipe=width is None)
        return
    if columns[-1].rest and fixed - widths[-1] + NARROWEST_REST <= width:
        widths[-1] = width - (fixed - widths[-1])
        yield from _table(columns, rows, widths)
        return
    for row in rows:
        yield from _card(columns, row, width)


def _longest(column: Column, width: int | None) -> int | None:
    """Return how wide a column may get; in a pipe that limits no name, but it limits texts."""
    if column.own_line:
        return column.longest or LONGEST_REST
    return column.aligned if width is None else column.longest


def table_line(columns: Sequence[Column], cells: Sequence[Text], widths: Sequence[int]) -> Text:
    """Return cells side by side, each filled up or cut to the width of its column."""
    line = Text()
    for column, text, width in zip(columns, cells, widths, strict=True):
        shown = cut(text, width)
        space = " " * (width - shown.cell_len)
        line = Text.assemble(line, *((space, shown) if column.right else (shown, space)), GAP)
    line.rstrip()
    return line


def _table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[Text]],
    widths: Sequence[int],
    *,
    in_pipe: bool = False,
) -> Iterator[Text]:
    head = [Text(column.label, style=LABEL) for column in columns]
    for row in (head, *rows):
        yield table_line(columns, row, [*map(_room, columns, row, widths)] if in_pipe else widths)


def _room(column: Column, text: Text, width: int) -> int:
    return max(width, text.cell_len) if column.aligned else width


def _card(columns: Sequence[Column], row: Sequence[Text], width: int) -> Iterator[Text]:
    line = row[0]  # what tells one record from another is never cut
    for column, text in zip(columns[1:], row[1:], strict=True):
        if not text.plain:
            continue
        named = Text.assemble((f"{column.label} ", LABEL), text) if column.named else text
        named = cut(named, width - len(GAP))
        if column.own_line or line.cell_len + len(GAP) + named.cell_len > width:
            yield line
            line = Text(GAP)
        else:
            line = Text.assemble(line, GAP)
        line.append_text(named)
    yield line
