"""Reads only the tool calls of recorded runs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from datetime import tzinfo
from functools import partial

from kantan_agents.traces.capture import RunCalls, TraceCalls
from kantan_agents.traces.capture.canonical import decode
from kantan_agents.traces.capture.reading import KnownContents, run_calls
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.metadata import RUN_SPAN
from kantan_agents.traces.record_tables import RUNS
from kantan_agents.traces.store.candidates import NEWEST
from kantan_agents.traces.store.connection import reading
from kantan_agents.traces.store.engine import engine_of
from kantan_agents.traces.store.filters import Filters
from kantan_agents.traces.store.run_records import (
    NO_RECORD,
    READING_ERRORS,
    Contents,
    has_run_tables,
    unreadable,
)
from kantan_agents.traces.tables import valid_json

_PAGE = 500

_NAMED = f"""
SELECT id AS trace_id, json_extract({valid_json("metadata_json")}, '$.agent_run_id') AS run_id
FROM main.traces WHERE id IN ({{marks}})
UNION
SELECT s.trace_id, json_extract({valid_json("s.raw_json")}, '$.span_data.data.agent_run_id')
FROM main.spans s WHERE s.trace_id IN ({{marks}}) AND s.span_type = 'custom' AND s.name = '{RUN_SPAN}'
"""  # noqa: S608


def read_calls(
    path: Place, filters: Filters, limit: int | None, tz: tzinfo
) -> Generator[TraceCalls, None, None]:
    """Yield the tool calls of matching traces, latest first."""
    with reading(path, any_thread=True) as connection:
        trace_ids = engine_of(path).find(connection, filters, limit, tz, NEWEST)
        reader = _Reader(connection)
        for start in range(0, len(trace_ids), _PAGE):
            yield from reader.page(trace_ids[start : start + _PAGE])


class _Reader:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._has_records = has_run_tables(connection)
        self._contents = Contents(connection)
        self._known = KnownContents()

    def page(self, trace_ids: Sequence[str]) -> Iterable[TraceCalls]:
        runs: dict[str, list[RunCalls]] = {}
        missing: dict[str, list[str]] = {}
        named = self._named(trace_ids)
        for trace_id, run_id, contents, body in self._rows(trace_ids):
            named.get(trace_id, {}).pop(run_id, None)
            try:
                run = self._run(trace_id, run_id, contents, body)
            except READING_ERRORS as error:
                missing.setdefault(trace_id, []).append(unreadable(run_id, error))
                continue
            runs.setdefault(trace_id, []).append(run)
            missing.setdefault(trace_id, []).extend(f"run {run.id}: {reason}" for reason in run.missing)
        for trace_id, without in named.items():
            missing.setdefault(trace_id, []).extend(map(NO_RECORD.format, without))
        for trace_id in trace_ids:
            if trace_id in runs or missing.get(trace_id):
                ordered = sorted(runs.get(trace_id, ()), key=lambda run: (run.started_at, run.id))
                yield TraceCalls(trace_id, tuple(ordered), tuple(missing.get(trace_id, ())))

    def _run(self, trace_id: str, run_id: str, contents: str, body: str) -> RunCalls:
        ids = json.loads(contents)
        resolve = partial(_content, self._contents, ids)
        return run_calls(run_id, trace_id, decode(body), resolve, self._known)

    def _rows(self, trace_ids: Sequence[str]) -> list[tuple[str, str, str, str]]:
        if not self._has_records:
            return []
        query = (
            f"SELECT trace_id, run_id, contents, body FROM {RUNS} "  # noqa: S608
            f"WHERE trace_id IN ({_marks(trace_ids)})"
        )
        with closing(self._connection.execute(query, trace_ids)) as rows:
            return [(row[0], bytes(row[1]).hex(), row[2], row[3]) for row in rows]

    def _named(self, trace_ids: Sequence[str]) -> dict[str, dict[str, None]]:
        named: dict[str, dict[str, None]] = {}
        query = _NAMED.format(marks=_marks(trace_ids))
        with closing(self._connection.execute(query, [*trace_ids, *trace_ids])) as rows:
            for trace_id, run_id in rows:
                if isinstance(run_id, str):
                    named.setdefault(trace_id, {})[run_id] = None
        return named


def _content(contents: Contents, ids: Sequence[int], place: int) -> object:
    return contents.get(ids[place])


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
