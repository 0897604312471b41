"""``approvals list``: prints the waiting calls."""

from __future__ import annotations

from typing import Final

import typer
from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, wide_terminal
from kantan_agents.cli.terminal.durable_runs import with_runs
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import local_time, short_time
from kantan_agents.durable import WaitingCall
from kantan_agents.durable.records import call_data
from kantan_agents.support.invisible import by_code

_COLUMNS: Final = (
    Column("run"),
    Column("call"),
    Column("agent", longest=30, drop=1),
    Column("tool", longest=40),
    Column("asked", drop=3),
    Column("arguments", own_line=True, rest=True),
)
_ANSWERS: Final = (Column("answer"), Column("by", longest=30, drop=2))


def print_approvals(database: str, *, answered: bool, run_id: str | None, as_json: bool) -> None:
    """Print the waiting calls, oldest first."""
    found = with_runs(database, lambda runs: runs.list_approvals(answered=answered, run_id=run_id))
    if as_json:
        typer.echo(json_text([call_data(one) for one in found]))
        return
    if not found:
        typer.echo("No calls." if answered else "No call waits.")
        return
    console = wide_terminal()
    width = line_width(console)
    columns = (*_COLUMNS[:4], *_ANSWERS, *_COLUMNS[4:]) if answered else _COLUMNS
    rows = [_row(one, in_pipe=width is None, answered=answered) for one in found]
    print_lines(console, row_lines(columns, rows, width))


def _row(call: WaitingCall, *, in_pipe: bool, answered: bool) -> list[Text]:
    style = BAD if call.answer == "rejected" else GOOD
    answer = [cell(call.answer or "", style), cell(call.answered_by or "")] if answered else []
    return [
        cell(call.run_id, ACCENT),
        cell(call.call_id),
        cell(call.agent),
        cell(call.tool),
        *answer,
        cell(local_time(call.asked_at) if in_pipe else short_time(call.asked_at)),
        cell(by_code(call.arguments, strict=True)),  # users decide by it
    ]
