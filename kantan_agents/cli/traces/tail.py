"""``kantan-agents traces tail``: new runs as they end, a line each."""

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
from kantan_agents.cli.terminal.rows import GAP, LONGEST_REST, NARROWEST_REST, line_width, table_line
from kantan_agents.cli.traces.data import summary_data
from kantan_agents.cli.traces.open_store import is_there
from kantan_agents.cli.traces.rows import COLUMNS, row_of
from kantan_agents.errors import TraceDatabaseError

if TYPE_CHECKING:
    from kantan_agents.tracing.store import TraceStore, TraceSummary

POLL = 0.5
_PATIENCE = 10.0


def tail_traces(path: Path, *, as_json: bool) -> None:
    """Print each new run until it is interrupted, or nobody reads any more.

    A database that is not there yet is waited for: a service makes it at its first run.

    Raises:
        TraceDatabaseError: E60, the database cannot be used.
    """
    since = None if _is_there(path) else datetime.now(timezone.utc)
    store = _open(path, waiting=since is not None)
    console = wide_terminal()
    lines = _Lines(line_width(console))
    for trace in store.follow(poll=POLL, started_after=since):
        if as_json:
            typer.echo(json_line(summary_data(trace), default=str))
        else:
            console.print(lines.line(trace), soft_wrap=True)
        sys.stdout.flush()


def _is_there(path: Path) -> bool:
    # SQLite makes an empty file before it makes tables.
    return is_there(path) and (path.is_dir() or path.stat().st_size > 0)


def _open(path: Path, *, waiting: bool) -> TraceStore:
    if waiting:
        typer.echo(f"waiting for {one_line(str(path))} ...", err=True)
        while not _is_there(path):
            time.sleep(POLL)
    from kantan_agents.tracing.store import TraceStore

    deadline = time.monotonic() + _PATIENCE
    while waiting and time.monotonic() < deadline:
        # A file that has just come may have no tables for a moment.
        with suppress(TraceDatabaseError):
            return TraceStore(path)
        time.sleep(POLL)
    return TraceStore(path)


class _Lines:
    """Lines of runs that stand under one another as far as can be known: columns only ever grow."""

    def __init__(self, width: int | None) -> None:
        self.width = width
        self.widths = [0] * len(COLUMNS)

    def line(self, trace: TraceSummary) -> Text:
        """Return a run on one line; the input takes what is left of it."""
        cells = row_of(trace)
        self.widths = [max(width, text.cell_len) for width, text in zip(self.widths, cells, strict=True)]
        taken = sum(self.widths[:-1]) + len(GAP) * (len(cells) - 1)
        rest = LONGEST_REST if self.width is None else max(self.width - taken, NARROWEST_REST)
        return table_line(COLUMNS, cells, [*self.widths[:-1], rest])
