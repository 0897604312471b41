"""``rollout history``: prints the changes of a rollout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs
import typer
from rich.text import Text

from kantan_agents.cli.rollout.list_rollouts import share_text
from kantan_agents.cli.terminal.console import ACCENT, BAD, wide_terminal
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import iso_time, local_time
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.lab.rollout import RolloutChange, history

_CHANGES: Final = (
    Column("time"),
    Column("action"),
    Column("new arms", right=True, named=True),
    Column("arm", longest=30),
    Column("by", longest=30, drop=1),
    Column("reason", own_line=True, rest=True),
)


def show_history(path: Path, name: str, *, as_json: bool) -> None:
    """Print the changes of a rollout, oldest first."""
    changes = history(name, open_store(path))
    if as_json:
        typer.echo(json_text([{**attrs.asdict(one), "at": iso_time(one.at)} for one in changes]))
        return
    console = wide_terminal()
    print_lines(console, row_lines(_CHANGES, [_row(one) for one in changes], line_width(console)))


def _row(change: RolloutChange) -> list[Text]:
    return [
        cell(local_time(change.at)),
        cell(change.action, BAD if change.action == "return" else ACCENT),
        cell(share_text(change.share)),
        cell(change.arm or ""),
        cell(change.author),
        cell(change.reason),
    ]
