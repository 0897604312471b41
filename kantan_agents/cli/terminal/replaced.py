"""Warns when project files replace the user's."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

import typer

from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.subagent_files.loading.directories import AgentDirectory, DirectoryScope
from kantan_agents.subagent_files.names import name_key

_MOST: Final = 10


def say_replaced(
    kind: str,
    shadowed: Iterable[Any],
    directories: Iterable[AgentDirectory],
    names: Collection[str] | None = None,
) -> None:
    """Name the user's files that a project's files of the same name replace.

    Users know their own files: a different behavior in one folder must not be silent.
    """
    places = tuple(directories)
    keys = None if names is None else {name_key(name) for name in names}
    lines = [
        f"note: the {kind} {one.name!r} of this project is used, {one.by}, and not yours, {one.path}"
        for one in shadowed
        if (keys is None or name_key(one.name) in keys)
        and scope_of(one.by, places) == "project"
        and scope_of(one.path, places) == "user"
    ]
    for line in lines[:_MOST]:
        typer.echo(one_line(line), err=True)
    if len(lines) > _MOST:
        typer.echo(f"note: and {len(lines) - _MOST} more; kantan-agents agents list shows them", err=True)


def scope_of(path: Path | None, directories: Iterable[AgentDirectory]) -> DirectoryScope | None:
    """Return the scope of a file's directory, or None."""
    if path is None:
        return None
    place = Path(os.path.abspath(path))  # noqa: PTH100 - as the loader has written it
    return next((one.scope for one in directories if place.is_relative_to(one.path)), None)
