"""The command ``kantan-agents demo``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.agent_options import ModelOption
from kantan_agents.cli.terminal.database import place_of

# Typer reads these types at run time, and older versions do not support `X | None` on Python 3.10.
DemoDatabaseOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--db",
        metavar="PATH",
        parser=place_of,
        help="SQLite database for the traces; created if it does not exist. Without it, a temporary one.",
        show_default=False,
    ),
]


def demo(
    model: ModelOption = None,
    db: DemoDatabaseOption = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the temporary database when there is no --db.")
    ] = False,
) -> None:
    """Show the main workflow: run an agent, judge its answer, find both in the traces.

    Needs no network and no key: without --model, a scripted model on 127.0.0.1 answers over HTTP.
    """
    from kantan_agents.cli.demo.demo import show_demo

    show_demo(model=model, database=db, keep=keep)
