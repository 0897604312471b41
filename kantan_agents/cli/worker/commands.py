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
            help="Take the runs of this queue. May be repeated.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", metavar="N", help="Parallel runs of a queue in this worker.")
    ] = CONCURRENCY,
    total: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--total", metavar="N", help="Parallel runs of a queue in all workers.", show_default=False
        ),
    ] = None,
    rate: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--rate",
            metavar="N/SECONDS",
            help="Runs of a queue that may start in a period, in all workers: 100/60.",
            show_default=False,
        ),
    ] = None,
    tenant_concurrency: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--tenant-concurrency",
            metavar="N",
            help="Parallel runs of each tenant, in all workers.",
            show_default=False,
        ),
    ] = None,
    tenant_rate: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--tenant-rate",
            metavar="N/SECONDS",
            help="Runs of each tenant that may start in a period, in all workers.",
            show_default=False,
        ),
    ] = None,
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            metavar="SECONDS",
            help="How long it waits for its runs after a signal. Other workers continue the rest.",
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
            help="The engine that gives runs to workers: dbos, or temporal://HOST:PORT/NAMESPACE.",
        ),
    ] = "dbos",
    application: ApplicationOption = APPLICATION,
    db: DurableDatabaseOption = DURABLE_DATABASE,
) -> None:
    """Run durable agents from queues until a signal stops it.

    It takes the runs of its queues, the runs that killed workers have left,
    and runs that continue after their approvals.

    SIGTERM or SIGINT (Ctrl-C) stops it: it starts no more runs and waits for
    its current ones. A second signal stops it immediately. No run is lost:
    another worker continues it.

    Limits apply to a queue. The worker that started last sets them for all.

    Example: kantan-agents worker shop.agents:support --queue support

    Exit codes: 0 stopped by a signal, 1 it failed, 2 bad arguments, or the
    database cannot be used. If its traces cannot be written, the runs continue,
    and the code is 0; E62 is logged.
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
