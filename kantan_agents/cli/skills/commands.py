"""The commands of ``kantan-agents skills`` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.new_app import new_group
from kantan_agents.cli.terminal.output_options import JsonOption, StrictOption

app = new_group()

# Typer reads these types at run time, and older versions do not support `X | None` on Python 3.10.


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List the skills and the Markdown commands of this project and its user.

    Exit codes: 0 listed, even without any, 1 a file cannot be loaded.
    """
    from kantan_agents.cli.skills.list import list_skills

    list_skills(as_json=as_json)


@app.command()
def validate(
    paths: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Argument(
            metavar="PATHS",
            help="Files, or directories of skills or commands; by default the usual directories.",
            readable=False,  # an unreadable file is reported like other mistakes in files
            show_default=False,
        ),
    ] = None,
    strict: StrictOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check skills and commands; print one line per problem: path, line, error or warning, message.

    A directory named commands holds commands, any other one skills. An error
    is a file that cannot be loaded. A warning is a part that was repaired or
    has no effect here.

    Exit codes: 0 no errors, even without files, 1 errors, 2 a path does not exist.
    """
    from kantan_agents.cli.skills.validate import validate_skills

    validate_skills(paths or (), strict=strict, as_json=as_json)
