"""Stores the statistics of changed traces."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from kantan_agents.core.usage import TOKENS
from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.figure_tables import (
    CHANGED,
    FIGURES,
    RUN_FIGURES,
    TRACE_FIGURES,
    VERDICTS,
    has_figures,
)
from kantan_agents.traces.store.connection import changing
from kantan_agents.traces.store.figures import TraceFigures, compute_figures
from kantan_agents.traces.store.space import SPACES_OF_CHOSEN

# One transaction; other writers wait for a few milliseconds.
_AT_ONCE = 64
_WAIT_SECONDS = 0.05

# SQLite's integers have 64 bits, and so must the sum over all runs.
_LARGEST_COUNT = 2**40

# SQLite executes a statement without the GIL; older versions accept at most 999 values.
_ROWS_PER_STATEMENT = 80


def keep_changed(path: Place, seconds: float) -> bool:
    """Store statistics for about ``seconds``; return whether more traces wait. E60 loses nothing."""
    deadline = time.monotonic() + seconds
    # The recorder owns the log, and checkpoints it less often.
    with changing(path, wait=_WAIT_SECONDS, keep_log=True) as connection:
        if not has_figures(connection):
            return False
        backend_of(path).prepare(connection)
        while keep_some(connection):
            if time.monotonic() > deadline:
                return True
    return False


def keep_some(connection: sqlite3.Connection) -> bool:
    """Store some statistics in one transaction; return False if none wait."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        trace_ids = _some_changed(connection)
        if trace_ids:
            _store(connection, trace_ids)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return bool(trace_ids)


def _some_changed(connection: sqlite3.Connection) -> list[str]:
    query = f"""SELECT json_group_array(trace_id) FROM (SELECT trace_id FROM main.{CHANGED}
    WHERE unstorable = 0 AND typeof(trace_id) = 'text' LIMIT {_AT_ONCE})"""  # noqa: S608
    found: list[str] = json.loads(connection.execute(query).fetchone()[0])
    return found


def _store(connection: sqlite3.Connection, trace_ids: Sequence[str]) -> None:
    run_rows: list[tuple[Any, ...]] = []
    verdict_rows: list[tuple[Any, ...]] = []
    unstorable: list[tuple[str]] = []
    for trace in compute_figures(connection, trace_ids):
        if _is_storable(trace):
            run_rows += _run_rows(trace)
            verdict_rows += _verdict_rows(trace)
        else:
            unstorable.append((trace.trace_id,))
    # The table `chosen` has all of these traces now.
    for table in (*FIGURES, CHANGED):
        connection.execute(
            f"DELETE FROM main.{table} WHERE trace_id IN (SELECT chosen_id FROM temp.chosen)"  # noqa: S608
        )
    connection.execute(f"INSERT INTO main.{TRACE_FIGURES} {SPACES_OF_CHOSEN}")
    _insert(connection, RUN_FIGURES, run_rows)
    _insert(connection, VERDICTS, verdict_rows)
    connection.executemany(f"INSERT INTO main.{CHANGED} VALUES (?, 1)", unstorable)  # noqa: S608


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    for start in range(0, len(rows), _ROWS_PER_STATEMENT):
        chunk = rows[start : start + _ROWS_PER_STATEMENT]
        values = ",".join([f"({','.join('?' * len(chunk[0]))})"] * len(chunk))
        connection.execute(f"INSERT INTO main.{table} VALUES {values}", [*chain.from_iterable(chunk)])  # noqa: S608


def _run_rows(trace: TraceFigures) -> Iterator[tuple[Any, ...]]:
    for place, run in enumerate(trace.runs):
        started_at = run.started_at and run.started_at.isoformat(timespec="microseconds")
        state = (run.is_judge, started_at, run.failed, run.microseconds)
        used = (run.tokens[kind] for kind in TOKENS)
        yield (trace.trace_id, place, *(run.prompt or (None, None)), *state, *used)


def _verdict_rows(trace: TraceFigures) -> Iterator[tuple[Any, ...]]:
    for place, verdict in enumerate(trace.verdicts):
        prompt = verdict.prompt or (None, None)
        yield (trace.trace_id, place, verdict.score, verdict.judged, *prompt)


def _is_storable(trace: TraceFigures) -> bool:
    prompts = [run.prompt for run in trace.runs] + [verdict.prompt for verdict in trace.verdicts]
    texts = [text for prompt in prompts for text in prompt or () if text]
    texts += [verdict.judged for verdict in trace.verdicts if verdict.judged]
    counts = [count for run in trace.runs for count in run.tokens.values()]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return all(abs(count) < _LARGEST_COUNT for count in counts)
