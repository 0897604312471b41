"""The group ``kantan-agents runs``."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.durable_database import (
    APPLICATION,
    DURABLE_DATABASE,
    ApplicationOption,
    DurableDatabaseOption,
)
from kantan_agents.cli.terminal.new_app import new_group
from kantan_agents.cli.terminal.output_options import JsonOption, ListLimitOption, most_of

app = new_group()

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run.")]


@app.command("list")
def list_runs(
    status: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--status",
            metavar="STATUS",
            help="Only queued, running, waiting, finished, failed, cancelled or parked runs.",
            show_default=False,
        ),
    ] = None,
    queue: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--queue", metavar="NAME", help="Only runs of this queue.", show_default=False),
    ] = None,
    limit: ListLimitOption = None,
    application: ApplicationOption = APPLICATION,
    db: DurableDatabaseOption = DURABLE_DATABASE,
    as_json: JsonOption = False,
) -> None:
    """List the latest durable runs, latest first.

    Exit codes: 0 listed, 2 bad arguments, or the database cannot be read.
    """
    from kantan_agents.cli.runs.list import print_runs

    print_runs(
        db, application, status=status, queue=queue, limit=most_of(limit, as_json=as_json), as_json=as_json
    )


@app.command()
def show(
    run: RunArgument,
    application: ApplicationOption = APPLICATION,
    db: DurableDatabaseOption = DURABLE_DATABASE,
    as_json: JsonOption = False,
) -> None:
    """Show a run: its status, the calls that need an approval, its output or its error.

    A run that waited for approvals continues as another run, which is named.

    Exit codes: 0 shown, 2 there is no such run, or the database cannot be read.
    """
    from kantan_agents.cli.runs.show import show_run

    show_run(db, application, run, as_json=as_json)


@app.command()
def cancel(
    run: RunArgument,
    application: ApplicationOption = APPLICATION,
    db: DurableDatabaseOption = DURABLE_DATABASE,
) -> None:
    """Cancel a run. Its worker stops it within a second.

    Exit codes: 0 canceled, 1 it has ended already, 2 there is no such run, or
    the database cannot be used.
    """
    from kantan_agents.cli.runs.steer import cancel_run

    cancel_run(db, application, run)


@app.command()
def resume(
    run: RunArgument,
    queue: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--queue",
            metavar="NAME",
            help="The queue to put it into. Default: the one that it came from, or any worker.",
            show_default=False,
        ),
    ] = None,
    application: ApplicationOption = APPLICATION,
    db: DurableDatabaseOption = DURABLE_DATABASE,
) -> None:
    """Resume a run that was canceled or parked.

    If it was canceled while it waited for approvals, it waits for them again.

    Exit codes: 0 queued, 1 it is in another state, 2 there is no such run, or
    the database cannot be used.
    """
    from kantan_agents.cli.runs.steer import resume_run

    resume_run(db, application, run, queue=queue)


@app.command()
def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="How long ago they ended, such as 12h or 30d.")
    ],
    application: ApplicationOption = APPLICATION,
    db: DurableDatabaseOption = DURABLE_DATABASE,
) -> None:
    """Delete the stored data of runs that have ended. Waiting and parked runs stay.

    It deletes inputs, steps, events, outcomes, and the past times of schedules.

    Exit codes: 0 deleted, 2 bad arguments, or the database cannot be used.
    """
    from kantan_agents.cli.runs.steer import prune_runs

    prune_runs(db, application, older_than=older_than)


@app.command()
def events(
    run: RunArgument,
    after: Annotated[
        int, typer.Option("--after", metavar="N", help="Start after the event of this number.")
    ] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", help="Print events as they come, until the run has ended.")
    ] = False,
    application: ApplicationOption = APPLICATION,
    db: DurableDatabaseOption = DURABLE_DATABASE,
) -> None:
    """Print the stored events of a run as JSON lines, each with its number.

    Workers store them with --keep-events. A line is
    {"sequence": 3, "event": {...}}

    Exit codes: 0 printed, 2 there is no such run, or the database cannot be
    read.
    """
    from kantan_agents.cli.runs.events import print_events

    print_events(db, application, run, after=after, follow=follow)
