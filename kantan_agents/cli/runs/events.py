"""``runs events``: prints stored events."""

from __future__ import annotations

import sys

import typer

from kantan_agents.cli.terminal.durable_runs import with_runs
from kantan_agents.cli.terminal.plain import json_line
from kantan_agents.durable import DurableRuns
from kantan_agents.durable.records import event_data
from kantan_agents.errors import InvalidOptionError


def print_events(database: str, application: str, run_id: str, *, after: int, follow: bool) -> None:
    """Print a run's events as JSON lines."""
    if after < 0:
        raise InvalidOptionError(option="--after", reason=f"must be 0 or more, not {after}")

    async def printed(runs: DurableRuns) -> int:
        count = 0
        async for event in runs.events(run_id, after=after, follow=follow):
            typer.echo(json_line(event_data(event), str))
            sys.stdout.flush()
            count += 1
        return count

    if not with_runs(database, printed, application) and not after:
        typer.echo("no events are stored of this run; start its worker with --keep-events", err=True)
