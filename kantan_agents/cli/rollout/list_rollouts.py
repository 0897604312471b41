"""``rollout status`` without a name: prints all rollouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import typer
from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, wide_terminal
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import iso_time, local_time, short_time
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.lab.rollout import RolloutState, rollouts

_ROLLOUTS: Final = (
    Column("name", longest=60),
    Column("agent", longest=30, drop=1),
    Column("started", drop=2),
    Column("status"),
    Column("new arms", right=True, named=True),
    Column("arms", own_line=True, rest=True, narrowest=8),
)


def list_rollouts(path: Path, *, as_json: bool) -> None:
    """Print all rollouts in the database."""
    found = rollouts(open_store(path))
    if as_json:
        typer.echo(json_text([state_data(one) for one in found]))
        return
    if not found:
        typer.echo("The database holds no rollouts.")
        return
    console = wide_terminal()
    width = line_width(console)
    print_lines(console, row_lines(_ROLLOUTS, [_row(one, in_pipe=width is None) for one in found], width))


def state_data(state: RolloutState) -> dict[str, Any]:
    """Return a rollout as JSON data."""
    return {
        "rollout": state.name,
        "agent": state.plan.agent,
        "status": state.status,
        "share": state.share,
        "step": state.step,
        "ramp": list(state.plan.ramp),
        "promoted_arm": state.arm,
        "arms": list(state.plan.arms),
        "created_at": iso_time(state.created_at),
    }


def _row(state: RolloutState, *, in_pipe: bool) -> list[Text]:
    started = state.created_at
    return [
        cell(state.name, ACCENT),
        cell(state.plan.agent),
        cell(local_time(started) if in_pipe else short_time(started)),
        cell(state.status if state.arm is None else f"{state.status} {state.arm}"),
        cell(share_text(state.share)),
        cell(", ".join(state.plan.arms)),
    ]


def share_text(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.4g}%"
