"""``traces export``: writes JSON Lines."""

from __future__ import annotations

import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import typer

from kantan_agents.cli.terminal.inputs import STDIN
from kantan_agents.cli.terminal.plain import json_line, one_line
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.errors import FileArgumentError, InvalidOptionError
from kantan_agents.support.private_files import open_private
from kantan_agents.traces.backend import backend_of


def export_traces(
    path: Path, filters: dict[str, Any], *, output: str | None, force: bool, limit: int | None
) -> None:
    """Write runs; an output file appears only when complete."""
    target = _target(path, output, force=force)
    _export(open_store(path).export(**filters, limit=limit), target, output, "run")


def export_experiments(
    path: Path, filters: dict[str, Any], *, output: str | None, force: bool, limit: int | None
) -> None:
    """Write the experiments with all their runs. Filters of runs are E75."""
    if any(value is not None for value in filters.values()):
        reason = "filters choose runs, and an experiment is exported as a whole; leave them out"
        raise InvalidOptionError(option="--experiments", reason=reason)
    from kantan_agents.lab.replay import Experiment

    target = _target(path, output, force=force)
    experiments = islice(Experiment.load_all(open_store(path)), limit)
    _export((one.to_dict() for one in experiments), target, output, "experiment")


def _target(path: Path, output: str | None, *, force: bool) -> Path | None:
    return None if output in (None, STDIN) else check_target(str(output), path, force=force)


def _export(records: Iterator[dict[str, Any]], target: Path | None, output: str | None, what: str) -> None:
    if target is None:
        _write(records, sys.stdout)
        return
    with _replacing(target) as file:
        written = _write(records, file)
    typer.echo(f"{counted(written, what)} written to {one_line(str(output))}", err=True)


def check_target(output: str, database: Path, *, force: bool) -> Path:
    """Return the file to write, with links resolved; never the ``database``."""
    try:
        target = Path(output).resolve()  # a link stays, its target is written
        there = target.exists()
        file = backend_of(database).file
        if there and file is not None and file.exists() and target.samefile(file):
            raise FileArgumentError(path=output, reason="it is the trace database")
        if there and not target.is_file():
            raise FileArgumentError(path=output, reason="it is not a regular file")
        if there and not force:
            raise FileArgumentError(path=output, reason="it exists already; --force replaces it")
        if not target.parent.is_dir():
            raise FileArgumentError(path=output, reason="its directory does not exist")
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, FileArgumentError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise FileArgumentError(path=output, reason=reason) from error
    return target


def _write(records: Iterator[dict[str, Any]], file: TextIO) -> int:
    written = 0
    for record in records:
        file.write(f"{json_line(record, default=str)}\n")
        written += 1
    return written


@contextmanager
def _replacing(target: Path) -> Iterator[TextIO]:
    """Yield a file that replaces ``target`` on success; a new one is private, an old one retains its mode."""
    beside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        try:
            with open(open_private(beside), "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
                yield file
            if target.exists():
                shutil.copymode(target, beside)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise FileArgumentError(path=str(target), reason=error.strerror or str(error)) from error
