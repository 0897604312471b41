"""``kantan-agents traces tail``: prints one line for each new run when it ends."""

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
from kantan_agents.cli.traces.open_store import path_exists
from kantan_agents.cli.traces.records import COLUMNS, row_of, summary_data
from kantan_agents.errors import TraceDatabaseError

if TYPE_CHECKING:
    from kantan_agents.tracing.store import TraceStore, TraceSummary

POLL = 0.5
_PATIENCE = 10.0


def tail_traces(path: Path, *, as_json: bool) -> None:
    """Print each new run until Ctrl-C, or until the output pipe is closed.

    If the database does not exist yet, wait for it: a service creates it at its first run.

    Raises:
        TraceDatabaseError: E60, the database cannot be used.
    """
    since = None if _has_content(path) else datetime.now(timezone.utc)
    store = _open(path, waiting=since is not None)
    console = wide_terminal()
    lines = _Lines(line_width(console))
    for trace in store.follow(poll=POLL, started_after=since):
        if as_json:
            typer.echo(json_line(summary_data(trace), default=str))
        else:
            console.print(lines.line(trace), soft_wrap=True)
        sys.stdout.flush()


def _has_content(path: Path) -> bool:
    # SQLite creates an empty file before it creates tables.
    return path_exists(path) and (path.is_dir() or path.stat().st_size > 0)


def _open(path: Path, *, waiting: bool) -> TraceStore:
    if waiting:
        typer.echo(f"waiting for {one_line(str(path))} ...", err=True)
        while not _has_content(path):
            time.sleep(POLL)
    from kantan_agents.tracing.store import TraceStore

    deadline = time.monotonic() + _PATIENCE
    while waiting and time.monotonic() < deadline:
        # A new file may have no tables for a moment.
        with suppress(TraceDatabaseError):
            return TraceStore(path)
        time.sleep(POLL)
    return TraceStore(path)


class _Lines:
    """Aligns the lines of runs as well as possible: columns only grow, since later runs are unknown."""

    def __init__(self, width: int | None) -> None:
        self.width = width
        self.widths = [0] * len(COLUMNS)

    def line(self, trace: TraceSummary) -> Text:
        """Return a run on one line; the input takes the remaining width."""
        cells = row_of(trace)
        self.widths = [max(width, text.cell_len) for width, text in zip(self.widths, cells, strict=True)]
        taken = sum(self.widths[:-1]) + len(GAP) * (len(cells) - 1)
        rest = LONGEST_REST if self.width is None else max(self.width - taken, NARROWEST_REST)
        return table_line(COLUMNS, cells, [*self.widths[:-1], rest])
