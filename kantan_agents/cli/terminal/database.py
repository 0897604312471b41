"""The rule that names the trace database: ``--db``, the environment, the default; for every command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DATABASE_VARIABLE = "KANTAN_AGENTS_DB"
DATABASE = Path("traces.sqlite3")

DatabaseOption = Annotated[
    Path,
    typer.Option("--db", metavar="PATH", envvar=DATABASE_VARIABLE, help="The trace database."),
]


def is_named(context: typer.Context) -> bool:
    """Return whether the command line itself names the database with ``--db``."""
    source = context.get_parameter_source("db")
    return source is not None and source.name == "COMMANDLINE"
