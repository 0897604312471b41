"""``kantan-agents runs cancel`` and ``resume``."""

from __future__ import annotations

import typer

from kantan_agents.cli.terminal.durable_runs import with_runs
from kantan_agents.cli.terminal.plain import one_line


def cancel_run(database: str, application: str, run_id: str) -> None:
    """Cancel a run.

    Raises:
        DurableRunNotFoundError: E154, there is no such run.
        RunMovedError: E157, it has ended.
        DurableDatabaseError: E156, the database cannot be used.
    """
    with_runs(database, lambda runs: runs.cancel(run_id), application)
    typer.echo(one_line(f"{run_id}: cancelled"))


def resume_run(database: str, application: str, run_id: str, *, queue: str | None) -> None:
    """Queue a run again that was cancelled or parked.

    Raises:
        DurableRunNotFoundError: E154, there is no such run.
        RunMovedError: E157, it is in another state.
        DurableDatabaseError: E156, the database cannot be used.
    """
    with_runs(database, lambda runs: runs.resume(run_id, queue=queue), application)
    typer.echo(one_line(f"{run_id}: queued again"))
