"""``kantan-agents rollout status``: prints rollouts, or the status of one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer
from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, LABEL, NOTICE, wide_terminal, working
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import (
    count_text,
    duration_text,
    iso_time,
    local_time,
    short_time,
)
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.lab.rollout import ArmFigures, RolloutState, RolloutStatus, rollouts, status
from kantan_agents.lab.rollout.verdict.judge import interval_text

_ROLLOUTS: Final = (
    Column("name", longest=60),
    Column("agent", longest=30, drop=1),
    Column("started", drop=2),
    Column("status"),
    Column("new arms", right=True, named=True),
    Column("arms", own_line=True, rest=True, narrowest=8),
)
_ARMS: Final = (
    Column("arm", longest=30),
    Column("share", right=True, named=True),
    Column("units", right=True, named=True),
    Column("runs", right=True, named=True, drop=1),
    Column("scored", right=True, named=True),
    Column("score", right=True, named=True),
    Column("failed", right=True, named=True),
    Column("cost", right=True, named=True),
    Column("tokens", right=True, named=True, drop=2),
    Column("p50", right=True, named=True, drop=3),
    Column("p95", right=True, named=True),
)
_GUARDS: Final = (
    Column("guard", longest=20),
    Column("arm", longest=30),
    Column("limit", right=True),
    Column("p", right=True, named=True),
    Column("units", right=True, named=True),
    Column("result"),
)
_STYLES: Final = {"promote": GOOD, "stop": BAD, "continue": NOTICE}


def list_rollouts(path: Path, *, as_json: bool) -> None:
    """Print all rollouts in the database.

    Raises:
        TraceDatabaseError: E60, the database cannot be read.
    """
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


def show_status(path: Path, name: str, *, as_json: bool) -> None:
    """Print the status of a rollout.

    Raises:
        RolloutNotFoundError: E112, there is no such rollout.
        TraceDatabaseError: E60, the database cannot be read.
    """
    store = open_store(path)
    console = wide_terminal()
    with working(wide_terminal(stderr=True), "reading the runs"):
        found = status(name, store)
    if as_json:
        typer.echo(json_text(found.to_dict()))
        return
    print_lines(console, _lines(found, line_width(console)))


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


def _lines(found: RolloutStatus, width: int | None) -> Iterator[Text]:
    state = found.state
    standing = f"{state.status}, {state.arm}" if state.arm is not None else state.status
    yield Text.assemble(
        cell(state.name, ACCENT), (" of agent ", LABEL), cell(state.plan.agent), ": ", cell(standing)
    )
    ramp = " > ".join(map(share_text, state.plan.ramp))
    yield Text.assemble(("ramp ", LABEL), ramp, (f", now {share_text(state.share)}", LABEL))
    yield Text()
    yield from row_lines(_ARMS, [_arm(arm) for arm in found.arms], width)
    if found.metric:
        yield Text()
        for one in found.metric:
            yield Text.assemble((f"{one_line(state.plan.metric or '')} ", LABEL), cell(_metric(found, one)))
    if found.guards:
        yield Text()
        rows = [
            [
                cell(guard.guard),
                cell(guard.arm),
                cell(guard.limit if isinstance(guard.limit, str) else f"+{guard.limit:g}"),
                cell(_p(guard.p)),
                cell(count_text(guard.units)),
                cell("exceeded", BAD) if guard.has_fired else cell("within, so far"),
            ]
            for guard in found.guards
        ]
        yield from row_lines(_GUARDS, rows, width)
    yield Text()
    for warning in found.warnings:
        yield Text.assemble(("warning: ", NOTICE), cell(warning))
    yield Text.assemble((found.verdict, _STYLES[found.verdict]), ": ", cell(found.reason, longest=None))


def _metric(found: RolloutStatus, one: Any) -> str:
    control = found.state.plan.control
    if one.difference is None:
        return f"{one.arm} against {control}: no scores"
    interval = f"{one.difference:+.3g} ({interval_text(one)})"
    return f"{one.arm} against {control}: {interval}, p {_p(one.p_better)} better, p {_p(one.p_worse)} worse"


def _arm(arm: ArmFigures) -> list[Text]:
    return [
        cell(arm.name, ACCENT),
        cell(share_text(arm.share)),
        cell(count_text(arm.units)),
        cell(count_text(arm.runs)),
        cell(count_text(arm.scored) if arm.scored else ""),
        cell("" if arm.mean_score is None else f"{arm.mean_score:.3g}"),
        cell("" if arm.failed is None else f"{arm.failed:.1%}"),
        cell("" if arm.mean_cost is None else f"{arm.mean_cost:.3g}"),
        cell("" if arm.mean_tokens is None else count_text(arm.mean_tokens)),
        cell(duration_text(arm.latency_p50)),
        cell(duration_text(arm.latency_p95)),
    ]


def share_text(share: float) -> str:
    """Return a share in per cent."""
    return f"{100 * share:.4g}%"


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"  # noqa: PLR2004
