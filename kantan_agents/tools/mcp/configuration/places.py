"""Finds configuration files of MCP servers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from kantan_agents.tools.mcp.configuration.config_directory import config_directory

NAMES = (".mcp.json", "kantan-agents.toml")
"""The names of configuration files, in order of priority."""


@attrs.frozen
class FoundConfiguration:
    """An existing file."""

    path: Path
    is_own: bool


def find_files(
    cwd: Path | None = None, environ: Mapping[str, str] | None = None
) -> tuple[FoundConfiguration, ...]:
    """Return the configuration files in order of priority.

    The user's own files come first: a project must not replace a server that the user's rules name. Outside a
    repository, only the working directory is searched.
    """
    own = config_directory(environ)
    directories = [] if own is None else [own]
    directories += up_to_the_root(Path(os.path.realpath(Path.cwd() if cwd is None else cwd)))
    found: dict[str, FoundConfiguration] = {}
    for path in _existing(directories):
        # A link in the user's directory to a project's file is a project's file.
        found.setdefault(os.path.realpath(path), FoundConfiguration(path, is_own_file(path, environ)))
    return tuple(found.values())


def is_own_file(path: Path, environ: Mapping[str, str] | None = None) -> bool:
    """Return whether it is in the user's directory, even after following links."""
    own = config_directory(environ)
    if own is None:
        return False
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(own))


def _existing(directories: list[Path]) -> Iterator[Path]:
    for directory in directories:
        for name in NAMES:
            if os.path.lexists(directory / name):
                yield directory / name


def up_to_the_root(nearest: Path) -> tuple[Path, ...]:
    """Return a real directory and its parents up to its repository's root, if any."""
    upward = (nearest, *nearest.parents)
    for number, directory in enumerate(upward, start=1):
        # `.git` is a file in a worktree or a submodule, else a directory.
        if os.path.exists(directory / ".git"):  # noqa: PTH110 - Path.exists raises where a parent cannot be searched
            return upward[:number]
    return (nearest,)
