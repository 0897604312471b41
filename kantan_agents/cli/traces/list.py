"""``traces list``: prints the latest runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from kantan_agents.cli.terminal.console import wide_terminal
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.rows import line_width, print_lines, row_lines
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.cli.traces.records import COLUMNS, rows_of, summary_data


def list_traces(path: Path, filters: dict[str, Any], *, limit: int | None, as_json: bool) -> None:
    """Print the latest runs that pass all filters."""
    traces = open_store(path).traces(**filters, limit=limit)
    if as_json:
        typer.echo(json_text([summary_data(trace) for trace in traces], default=str))
    elif traces:
        console = wide_terminal()
        width = line_width(console)
        print_lines(console, row_lines(COLUMNS, rows_of(traces, width), width))
    else:
        typer.echo(nothing_found(filters))


def nothing_found(filters: dict[str, Any]) -> str:
    """Return the message for an empty list."""
    filtered = any(value is not None for value in filters.values())
    return "No run passes these filters." if filtered else "The database holds no runs."
