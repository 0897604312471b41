"""``kantan-agents runs list``: prints durable runs."""

from __future__ import annotations

from typing import Final

import typer
from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, NOTICE, wide_terminal
from kantan_agents.cli.terminal.durable_runs import with_runs
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import local_time, short_time
from kantan_agents.durable import DurableRun
from kantan_agents.durable.records import run_data

STYLES: Final = {
    "finished": GOOD,
    "failed": BAD,
    "parked": BAD,
    "cancelled": NOTICE,
    "waiting": NOTICE,
    "running": ACCENT,
}
_COLUMNS: Final = (
    Column("run"),
    Column("status"),
    Column("agent", longest=30),
    Column("queue", longest=30, drop=1),
    Column("created", drop=2),
    Column("error", own_line=True, rest=True),
)


def print_runs(
    database: str,
    application: str,
    *,
    status: str | None,
    queue: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print the latest runs."""
    found = with_runs(
        database, lambda runs: runs.list_runs(status=status, queue=queue, limit=limit), application
    )
    if as_json:
        typer.echo(json_text([run_data(one) for one in found]))
        return
    if not found:
        typer.echo("No runs." if status is None and queue is None else "No such runs.")
        return
    console = wide_terminal()
    width = line_width(console)
    print_lines(console, row_lines(_COLUMNS, [_row(one, in_pipe=width is None) for one in found], width))


def _row(run: DurableRun, *, in_pipe: bool) -> list[Text]:
    return [
        cell(run.run_id, ACCENT),
        cell(run.status, STYLES.get(run.status, "")),
        cell(run.agent),
        cell(run.queue or ""),
        cell(local_time(run.created_at) if in_pipe else short_time(run.created_at)),
        cell(run.error or ""),
    ]
