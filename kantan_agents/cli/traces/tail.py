"""``traces tail``: prints new runs."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from kantan_agents.cli.terminal.console import wide_terminal
from kantan_agents.cli.terminal.plain import json_line, one_line
from kantan_agents.cli.terminal.rows import cut, fitted, line_width, table_line
from kantan_agents.cli.traces.open_store import path_exists
from kantan_agents.cli.traces.records import COLUMNS, rows_of, summary_data
from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.backend import backend_of

if TYPE_CHECKING:
    from kantan_agents.traces.store import TraceStore, TraceSummary

POLL = 0.5
_PATIENCE = 10.0
# The first lines reserve the usual width of later ones.
_USUAL_WIDTHS = [8, 11, 6, 6, 9, 12, 12, 7, 16]


def tail_traces(path: Path, *, as_json: bool) -> None:
    """Print new runs. It waits for a missing database: a service creates it at its first run."""
    since = None if _has_content(path) else datetime.now(timezone.utc)
    store = _open(path, waiting=since is not None)
    console = wide_terminal()
    lines = RunLines(line_width(console))
    for trace in store.follow(poll=POLL, started_after=since):
        if as_json:
            typer.echo(json_line(summary_data(trace), default=str))
        else:
            console.print(lines.line(trace), soft_wrap=True)
        sys.stdout.flush()


def _has_content(path: Path) -> bool:
    return path_exists(path) and backend_of(path).has_content()


def _open(path: Path, *, waiting: bool) -> TraceStore:
    if waiting:
        typer.echo(f"waiting for {one_line(str(path))} ...", err=True)
        while not _has_content(path):
            time.sleep(POLL)
    from kantan_agents.traces.store import TraceStore

    deadline = time.monotonic() + _PATIENCE
    while waiting and time.monotonic() < deadline:
        # A new file may have no tables for a moment.
        with suppress(TraceDatabaseError):
            return TraceStore(path)
        time.sleep(POLL)
    return TraceStore(path)


class RunLines:
    """A line per run; columns only grow."""

    def __init__(self, width: int | None) -> None:
        self.width = width
        self.widths = _USUAL_WIDTHS

    def line(self, trace: TraceSummary) -> Text:
        """Return a run on one line."""
        (cells,) = rows_of([trace], self.width)
        self.widths = [
            max(width, min(text.cell_len, column.longest or text.cell_len))
            for column, width, text in zip(COLUMNS, self.widths, cells, strict=True)
        ]
        if self.width is None:
            widths = [max(width, text.cell_len) for width, text in zip(self.widths, cells, strict=True)]
            return table_line(COLUMNS, cells, widths)
        shown = fitted(COLUMNS, self.widths, self.width) or dict(enumerate(self.widths))
        line = table_line([COLUMNS[index] for index in shown], [cells[i] for i in shown], [*shown.values()])
        return cut(line, self.width)
