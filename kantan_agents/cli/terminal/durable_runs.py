"""Opens a database's durable runs, without starting them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from kantan_agents.cli.terminal.durable_database import APPLICATION, database_url
from kantan_agents.durable import DurableRuns
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.errors import DurableDatabaseError

T = TypeVar("T")


def with_runs(
    database: str, work: Callable[[DurableRuns], Awaitable[T]], application: str = APPLICATION
) -> T:
    """Call ``work`` with the runs of a database."""
    url = database_url(database)

    engine = "dbos"  # if nothing is installed, its error explains it
    with suppress(ImportError):
        engine = _engine_of(url)

    async def opened() -> T:
        runs = DurableRuns(url, application=application, engine=engine)
        _check_exists(url)
        try:
            return await work(runs)
        finally:
            await runs.stop()

    return asyncio.run(opened())


def _engine_of(url: str) -> str:
    """Return a database's engine: only the worker has an option for it."""
    database = RunDatabase(url)
    if not _exists(url):
        return "dbos"
    try:
        return "dbos" if database.identity() == "dbos" else "temporal://"
    finally:
        database.close()


def _check_exists(url: str) -> None:
    # A new file would be empty, and the name is probably wrong.
    if not _exists(url):
        reason = "there is no such file; a worker creates it, or a service with DurableRuns"
        raise DurableDatabaseError(database=url, reason=reason)


def _exists(url: str) -> bool:
    from sqlalchemy import make_url

    return not url.startswith("sqlite") or Path(make_url(url).database or "").is_file()
