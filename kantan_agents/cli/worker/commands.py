"""The command ``kantan-agents worker``."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.database import DATABASE_VARIABLE
from kantan_agents.cli.terminal.durable_database import (
    APPLICATION,
    DURABLE_DATABASE,
    ENGINE_VARIABLE,
    ApplicationOption,
    DurableDatabaseOption,
)

CONCURRENCY = 20


def worker(
    agents: Annotated[
        list[str],
        typer.Argument(metavar="MODULE:NAME", help="Agents, or lists of agents, such as shop.agents:all."),
    ],
    queues: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--queue",
            metavar="NAME",
            help="Make the runs of this queue. May be given several times.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", metavar="N", help="Runs of a queue at once in this worker.")
    ] = CONCURRENCY,
    total: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--total", metavar="N", help="Runs of a queue at once in all workers.", show_default=False
        ),
    ] = None,
    rate: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--rate",
            metavar="N/SECONDS",
            help="Runs of a queue that may begin in a time, in all workers: 100/60.",
            show_default=False,
        ),
    ] = None,
    tenant_concurrency: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--tenant-concurrency",
            metavar="N",
            help="Runs of each tenant at once, in all workers.",
            show_default=False,
        ),
    ] = None,
    tenant_rate: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--tenant-rate",
            metavar="N/SECONDS",
            help="Runs of each tenant that may begin in a time, in all workers.",
            show_default=False,
        ),
    ] = None,
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            metavar="SECONDS",
            help="How long it may take to end after a signal. Others go on with the runs that are left.",
        ),
    ] = 10.0,
    keep_events: Annotated[
        bool, typer.Option("--keep-events", help="Store the events of runs, for `runs events`.")
    ] = False,
    traces: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--traces",
            metavar="PATH|URL",
            envvar=DATABASE_VARIABLE,
            help="Record the runs in this trace database. Otherwise the module decides.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="dbos|URL",
            envvar=ENGINE_VARIABLE,
            help="What gives runs to workers: dbos, or temporal://HOST:PORT/NAMESPACE.",
        ),
    ] = "dbos",
    application: ApplicationOption = APPLICATION,
    db: DurableDatabaseOption = DURABLE_DATABASE,
) -> None:
    """Make durable runs of some agents until a signal ends it.

    It makes the runs of its queues, those that workers have left which ended
    without a signal, and those that go on after people have answered.

    SIGTERM or SIGINT (Ctrl-C) ends it: it begins no more runs, and lets those
    that are being made end. A second signal ends it at once. No run is lost:
    another worker goes on with it.

    Exit codes: 0 ended by a signal, 1 it failed, 2 bad arguments, or the
    database cannot be used. If its traces cannot be written, the runs go on,
    and it ends with 0; E62 is logged.
    """
    from kantan_agents.cli.worker.limits import limits_of

    limits = limits_of(
        concurrency=concurrency,
        total=total,
        rate=rate,
        tenant_concurrency=tenant_concurrency,
        tenant_rate=tenant_rate,
    )

    from kantan_agents.cli.worker.work import work

    work(
        agents,
        db,
        queues=dict.fromkeys(queues or (), limits),
        grace=grace,
        keep_events=keep_events,
        traces=traces,
        application=application,
        engine=engine,
    )
