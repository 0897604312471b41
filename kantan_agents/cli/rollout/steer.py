"""``kantan-agents rollout promote`` and ``stop``."""

from __future__ import annotations

from pathlib import Path

import typer

from kantan_agents.cli.rollout.list_rollouts import share_text, state_data
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.lab.rollout import RolloutState, promote, stop


def promote_rollout(
    path: Path, name: str, *, arm: str | None, by: str, reason: str, expect_step: int | None, as_json: bool
) -> None:
    """Promote a rollout, and print the new assignment."""
    state = promote(name, open_store(path), arm=arm, by=by, reason=reason, expect_step=expect_step)
    _print(state, as_json=as_json)


def stop_rollout(path: Path, name: str, *, by: str, reason: str, as_json: bool) -> None:
    """Stop a rollout, and print the new assignment."""
    _print(stop(name, open_store(path), by=by, reason=reason), as_json=as_json)


def _print(state: RolloutState, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json_text(state_data(state)))
        return
    new, control = state.plan.new_arms, state.plan.control
    if state.status == "promoted":
        text = f"all units get {state.arm}"
    elif state.status == "stopped":
        text = f"all units get {control}"
    else:
        text = f"{share_text(state.share)} of the units get {' or '.join(new)}, the others {control}"
    typer.echo(one_line(f"{state.name}: {text}"))
