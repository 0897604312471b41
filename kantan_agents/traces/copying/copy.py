"""Copies the traces of one database into another one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Final

import attrs

from kantan_agents.errors import TraceCopyError
from kantan_agents.traces.copying.source import CopySource, State, TracePage
from kantan_agents.traces.copying.target import CopyTarget, open_target
from kantan_agents.traces.database_url import Place, PostgresUrl, as_place
from kantan_agents.traces.registry import flush_recorders
from kantan_agents.traces.store.connection import check_path, reading, sqlite_errors

Progress = Callable[[int, int], None]

PAGE: Final = 100


@attrs.frozen
class CopyResult:
    """The result of ``copy_traces``.

    Attributes:
        traces: Number of newly copied traces.
        spans: Number of their spans.
        runs: Number of their complete records.
        known: Number of unchanged traces that the target had already.
        left_out: Kinds of data in the source that are not copied, such as ``"evaluations"``; empty if all was
            copied.
    """

    traces: int
    spans: int
    runs: int
    known: int
    left_out: Sequence[str]


def copy_traces(
    source: str | PathLike[str] | PostgresUrl,
    target: str | PathLike[str] | PostgresUrl,
    *,
    adopt: bool = False,
    progress: Progress | None = None,
) -> CopyResult:
    """Copy the traces that the target lacks, oldest first, with their complete records.

    Use it to move recorded runs between files and Postgres. Only traces that the target lacks or that have
    changed in the source are copied, so the same call can be repeated, and continues an interrupted one.
    Evaluations, scores, experiments and rollouts are not copied; ``left_out`` names those in the source.

    Args:
        source: The path of a file, or the URL of a database in Postgres. It is not changed.
        target: The same; it is created if it is missing.
        adopt: Whether the target may be the database of another program.
        progress: Called with the number of traces done so far, and of all.

    Raises:
        TraceCopyError: E142, both are the same database.
        TraceDatabaseError: E60, one of them cannot be used. Copied traces stay copied.
    """
    given, wanted = as_place(source), as_place(target)
    for place in (given, wanted):
        check_path(place)
    if given.resolve() == wanted.resolve():
        raise TraceCopyError(source=str(given), target=str(wanted), reason="they are the same database")
    flush_recorders(given)
    flush_recorders(wanted)
    with reading(given) as connection, open_target(wanted, adopt=adopt) as opened:
        return _copied(given, connection, wanted, opened, progress)


def _copied(
    given: Place,
    connection: sqlite3.Connection,
    wanted: Place,
    target: CopyTarget,
    progress: Progress | None,
) -> CopyResult:
    source = CopySource(connection)
    total, done = source.count(), 0
    traces = spans = runs = known = 0
    for page in source.pages(PAGE):
        with sqlite_errors(given):
            states = source.states(page)
        with sqlite_errors(wanted):
            theirs = target.states(page)
        changed = [row for row in page if theirs.get(row[0]) != _as_stored(target, states.get(row[0]))]
        known += len(page) - len(changed)
        if changed:
            content: TracePage = source.read(changed)
            with sqlite_errors(wanted):
                target.write(content)
            traces += len(changed)
            spans += len(content.spans)
            runs += len(content.runs)
        done += len(page)
        if progress is not None:
            progress(done, max(done, total))
    if traces:
        with sqlite_errors(wanted):
            target.finish()
    return CopyResult(traces, spans, runs, known, source.left_out())


def _as_stored(target: CopyTarget, state: State | None) -> State | None:
    return None if state is None else state._replace(row=target.as_stored(state.row))
