"""``kantan-agents runs cancel``, ``resume`` and ``prune``."""

from __future__ import annotations

from typing import Any

import typer

from kantan_agents.cli.terminal.durable_runs import with_runs
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.read_quantities import read_duration


def cancel_run(database: str, application: str, run_id: str) -> None:
    """Cancel a run."""
    with_runs(database, lambda runs: runs.cancel(run_id), application)
    typer.echo(one_line(f"{run_id}: cancelled"))


def resume_run(database: str, application: str, run_id: str, *, queue: str | None) -> None:
    """Resume a canceled or parked run."""

    async def resume(runs: Any) -> str:
        await runs.resume(run_id, queue=queue)
        return str((await runs.get(run_id)).status)

    status = with_runs(database, resume, application)
    typer.echo(one_line(f"{run_id}: {'waits for people' if status == 'waiting' else 'queued'} again"))


def prune_runs(database: str, application: str, *, older_than: str) -> None:
    """Delete runs that ended long ago."""
    age = read_duration(older_than, "--older-than")
    count = with_runs(database, lambda runs: runs.prune(older_than=age), application)
    typer.echo(f"{count} runs deleted")
