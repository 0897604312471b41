"""The rule that names the database of durable runs: ``--db``, the environment, the default."""

from __future__ import annotations

from typing import Annotated, Final

import typer

DURABLE_VARIABLE: Final = "KANTAN_AGENTS_DURABLE_DB"
DURABLE_DATABASE: Final = "sqlite:///durable.sqlite3"

DurableDatabaseOption = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        envvar=DURABLE_VARIABLE,
        help="The database of durable runs: sqlite:///PATH or a path, or postgresql://...",
    ),
]


def database_url(given: str) -> str:
    """Return the URL of a database that is named by a URL or by the path of a SQLite file."""
    return given if "://" in given else f"sqlite:///{given}"
