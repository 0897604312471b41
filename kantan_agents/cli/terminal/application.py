"""The option that names the application of durable runs."""

from __future__ import annotations

from typing import Annotated, Final

import typer

APPLICATION: Final = "kantan-agents"

ApplicationOption = Annotated[
    str,
    typer.Option(
        "--application",
        metavar="NAME",
        help="The application. Workers of the same name make each other's runs.",
    ),
]
