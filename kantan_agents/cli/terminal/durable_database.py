"""Options of durable runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

DURABLE_VARIABLE: Final = "KANTAN_AGENTS_DURABLE_DB"
ENGINE_VARIABLE: Final = "KANTAN_AGENTS_DURABLE_ENGINE"
DURABLE_DATABASE: Final = "sqlite:///durable.sqlite3"

DurableDatabaseOption = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        envvar=DURABLE_VARIABLE,
        help="The database of durable runs: sqlite:///PATH or a path, or postgresql://... Only worker "
        "creates a file.",
    ),
]


APPLICATION: Final = "kantan-agents"

ApplicationOption = Annotated[
    str,
    typer.Option(
        "--application",
        metavar="NAME",
        help="The application. Workers of the same name continue each other's runs.",
    ),
]


def database_url(given: str) -> str:
    """Return the URL for a URL or the path of a SQLite file.

    E156 if the default file is a link, which may have come with the folder.
    """
    from kantan_agents.traces.database_url import has_pairs

    url = given if "://" in given or has_pairs(given) else f"sqlite:///{given}"
    if url == DURABLE_DATABASE and Path(url.removeprefix("sqlite:///")).is_symlink():
        from kantan_agents.errors import DurableDatabaseError

        reason = "it is a symbolic link, which may lead anywhere; name the file that it leads to instead"
        raise DurableDatabaseError(database=url, reason=reason)
    return url
