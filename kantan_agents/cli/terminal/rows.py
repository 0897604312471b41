"""Lays out records as a table or as lines."""

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
        longest: Maximum width; in a pipe it only limits columns with a separate line (``own_line``).
        aligned: Maximum width in a pipe; a longer cell only shifts the rest of its row.
        named: Whether cells show the label outside a table.
        rest: Whether it takes the remaining width; only for the last column.
        narrow: Maximum width in a table that is otherwise too wide.
        drop: Order in which a too wide table omits columns; 0 for never.
        leaves: Minimum width for the last column, or else this one is omitted.
    """

    label: str
    right: bool = False
    longest: int | None = None
    aligned: int | None = None
    named: bool = False
    own_line: bool = False
    rest: bool = False
    narrowest: int = NARROWEST_REST
    narrow: int | None = None
    drop: int = 0
    leaves: int = 0


def line_width(console: Console) -> int | None:
    """Return a line's maximum length; None in a pipe."""
    if console.file.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return max(console.width, 1)
    return None


def print_lines(console: Console, lines: Iterable[Text]) -> None:
    """Print ``lines``; the terminal wraps long ones."""
    for line in lines:
        console.print(line, soft_wrap=True)


def cell(value: object, style: str = "", *, longest: int | None = None) -> Text:
    """Return ``value`` on one line, cut."""
    # Cut first: the value may be megabytes long.
    text = plain(one_line(str(value)[: 4 * MAX_LINE]), style)
    return text if longest is None else cut(text, longest)


def cut(text: Text, cells: int) -> Text:
    """Return ``text``, cut with three dots if too wide."""
    if text.cell_len <= cells:
        return text
    beginning = text.copy()
    beginning.truncate(max(cells - len(_DOTS), 0))
    beginning.rstrip()
    return beginning.append(_DOTS[:cells])


def row_lines(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Text]],
    width: int | None,
    below: Sequence[Sequence[Text]] = (),
) -> Iterator[Text]:
    """Yield a table without empty columns or, if too wide, a few lines per row.

    ``width`` is None in a pipe; ``below`` has more lines for each row.
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
    shown = dict(enumerate(widths)) if width is None else fitted(columns, widths, width)
    for number, row in enumerate(rows):
        if shown is None:
            yield from _card(columns, row, width or 0)
        else:
            heads = [Text(column.label, style=LABEL) for column in columns]
            for cells in (row,) if number else (heads, row):
                yield _shown_line(columns, cells, shown, in_pipe=width is None)
        for line in below[number] if below else ():
            yield Text.assemble(GAP, line if width is None else cut(line, width - len(GAP)))


def fitted(columns: Sequence[Column], widths: Sequence[int], width: int) -> dict[int, int] | None:
    """Return the fitting columns' indexes and widths; None if too few fit.

    Columns are first narrowed, then omitted in the order of ``drop``.
    """
    shown = dict(enumerate(widths))
    if (fitting := _with_rest(columns, shown, width)) is not None:
        return fitting
    shown = {index: min(shown[index], columns[index].narrow or shown[index]) for index in shown}
    for _, index in [(0, None), *sorted((column.drop, i) for i, column in enumerate(columns) if column.drop)]:
        shown = {kept: shown[kept] for kept in shown if kept != index}
        if (fitting := _with_rest(columns, shown, width)) is not None:
            return fitting
    return None


def _with_rest(columns: Sequence[Column], shown: dict[int, int], width: int) -> dict[int, int] | None:
    last = max(shown)
    leaves = max(columns[index].leaves for index in shown)
    taken = sum(shown.values()) - shown[last] + len(GAP) * (len(shown) - 1)
    if taken + shown[last] <= width:
        return shown
    if columns[last].rest and taken + max(columns[last].narrowest, leaves) <= width:
        return {**shown, last: width - taken}
    return None


def _longest(column: Column, width: int | None) -> int | None:
    if column.own_line and not (column.rest and width is None):
        return column.longest or LONGEST_REST
    return column.aligned if width is None else column.longest


def table_line(columns: Sequence[Column], cells: Sequence[Text], widths: Sequence[int]) -> Text:
    """Return cells side by side."""
    line = Text()
    for column, text, width in zip(columns, cells, widths, strict=True):
        shown = cut(text, width)
        space = " " * (width - shown.cell_len)
        line = Text.assemble(line, *((space, shown) if column.right else (shown, space)), GAP)
    line.rstrip()
    return line


def _shown_line(
    columns: Sequence[Column], cells: Sequence[Text], shown: dict[int, int], *, in_pipe: bool
) -> Text:
    widths = [
        max(width, cells[index].cell_len) if in_pipe and columns[index].aligned else width
        for index, width in shown.items()
    ]
    return table_line([columns[index] for index in shown], [cells[index] for index in shown], widths)


def _card(columns: Sequence[Column], row: Sequence[Text], width: int) -> Iterator[Text]:
    line = row[0]  # identifies the record, so it is never cut
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
