"""Reads the user's hooks file."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any, Final

import attrs

from kantan_agents.cli.hooks.hook import Hook, parse_hooks
from kantan_agents.cli.terminal.protect_used import protect_used
from kantan_agents.errors import HooksFileError
from kantan_agents.tools.mcp.configuration.config_directory import config_directory
from kantan_agents.tools.mcp.configuration.own_start import project_folders

NAME: Final = "hooks.json"
PROJECT_VARIABLE: Final = "KANTAN_AGENTS_PROJECT_DIR"

_MOST_BYTES: Final = 1_048_576
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


@attrs.frozen
class HooksFile:
    """The hooks; commands run in ``folder``."""

    path: Path
    folder: Path
    hooks: tuple[Hook, ...]


def read_hooks(root: str) -> HooksFile | None:
    """Read the user's hooks file, and protect it and the files that it names.

    E199 if it is invalid, or other users or the tools can change it.
    """
    own = config_directory()
    if own is None or not os.path.lexists(own / NAME):
        return None
    if os.name == "nt":
        raise HooksFileError(path=str(own / NAME), problems=["hooks need Linux or macOS"])
    places = _Places(Path(os.path.realpath(own)), (Path(root), *project_folders()))
    file = places.own / NAME
    problems = [*places.faults_of_folder(), *places.faults(file)]
    hooks: list[Hook] = []
    if not problems:
        hooks, problems = _parsed(file)
    named = {hook.place: list(_files(hook.command, places.own, root)) for hook in hooks}
    problems += [
        f"{at}: {fault}" for at, files in named.items() for one in files for fault in places.faults(one)
    ]
    if problems:
        raise HooksFileError(path=str(own / NAME), problems=problems)
    protect_used([file, *(one for files in named.values() for one in files)], has_tools=True)
    return HooksFile(own / NAME, places.own, tuple(hooks)) if hooks else None


@attrs.frozen
class _Places:
    own: Path
    worked_in: tuple[Path, ...]

    def faults_of_folder(self) -> Iterator[str]:
        home = Path(os.path.realpath(os.path.expanduser("~")))  # noqa: PTH111 - never fails
        for place in self.worked_in:
            # Every user's home folder contains this directory, which is protected there.
            is_inside = self.own.is_relative_to(place) and not home.is_relative_to(place)
            if is_inside or place.is_relative_to(self.own):
                yield f"you work in {place}, and it is in {self.own}; start elsewhere"
        yield from _faults_of_mode(self.own)

    def faults(self, file: Path) -> Iterator[str]:
        for path in {Path(os.path.normpath(file)), Path(os.path.realpath(file))}:
            if any(map(path.is_relative_to, self.worked_in)) and not path.is_relative_to(self.own):
                yield f"{path} is in the folder that you work in; move it to {self.own}"
        yield from _faults_of_mode(file)


def _faults_of_mode(path: Path) -> Iterator[str]:
    try:
        status = path.stat()
    except OSError as error:
        yield f"{path}: {error.strerror or error}"
        return
    if status.st_uid not in (os.geteuid(), 0):
        yield f"{path} belongs to another user"
    if status.st_mode & _OTHERS_MAY_WRITE:
        yield f"others may write to {path}; run chmod go-w {shlex.quote(str(path))}"


def _files(command: str, folder: Path, root: str) -> Iterator[Path]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.commenters, lexer.whitespace_split = "", True
    try:
        words = list(lexer)
    except ValueError:  # an unclosed quotation mark, which the shell will report
        words = command.split()
    for word in words:
        text = Template(word).safe_substitute({**os.environ, PROJECT_VARIABLE: root})
        path = folder / os.path.expanduser(text)  # noqa: PTH111 - never fails
        if os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for some strings
            yield path


def _parsed(path: Path) -> tuple[list[Hook], list[str]]:
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return [], [f"it is not a regular file of at most {_MOST_BYTES} bytes"]
    try:
        content = path.read_bytes()
        return parse_hooks(json.loads(content.decode("utf-8-sig"), object_pairs_hook=_object))
    except OSError as error:
        return [], [error.strerror or str(error)]
    except (ValueError, RecursionError) as error:
        return [], [f"it is not JSON: {error}"]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:  # a reader may see the first, but the last would count
            raise ValueError(f"{key!r} appears several times in an object")
        found[key] = value
    return found
