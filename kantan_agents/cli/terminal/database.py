"""The trace database: ``--db``, the environment, the default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DATABASE_VARIABLE = "KANTAN_AGENTS_DB"
DATABASE = Path("traces.sqlite3")


def place_of(given: str | Path) -> Path:
    """Return the given file path or Postgres URL; raise BadParameter if it names no database."""
    if not isinstance(given, str):
        return Path(given)
    from kantan_agents.errors import InvalidOptionError
    from kantan_agents.traces.database_url import as_place, check_path, is_url, path_of

    try:
        if is_url(given):
            return path_of(as_place(given))
        check_path(given)
    except InvalidOptionError as error:
        raise typer.BadParameter(error.reason) from error
    return Path(given)


DatabaseOption = Annotated[
    Path,
    typer.Option(
        "--db",
        metavar="PATH",
        parser=place_of,
        envvar=DATABASE_VARIABLE,
        help="The trace database: a file, or a postgresql:// URL.",
    ),
]


def is_named(context: typer.Context) -> bool:
    """Return whether ``--db`` is on the command line."""
    source = context.get_parameter_source("db")
    return source is not None and source.name == "COMMANDLINE"
