"""The age and the size of traces, from statistics or spans."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from kantan_agents.traces.figure_tables import CHANGED, TRACE_FIGURES, has_figures

# The size of a span's row without its long columns, plus its index entries.
_ROW_BYTES = 400
_BYTES = " + ".join(
    f"COALESCE(LENGTH(CAST({column} AS BLOB)), 0)"
    for column in (
        "input",
        "output",
        "tool_calls_json",
        "structured_json",
        "rubric_json",
        "usage_json",
        "error_json",
        "raw_json",
    )
)
_SIZE = f"COUNT(s.trace_id), COALESCE(SUM({_ROW_BYTES} + {_BYTES}), 0)"

SPACES_OF_CHOSEN = f"""SELECT c.chosen_id, MAX(s.started_at), {_SIZE}
FROM temp.chosen c CROSS JOIN all_traces t ON t.id = c.chosen_id
LEFT JOIN spans s ON s.trace_id = t.id GROUP BY c.chosen_id"""  # noqa: S608

_KEPT = f"""FROM main.{TRACE_FIGURES} f
WHERE NOT EXISTS (SELECT 1 FROM main.{CHANGED} c WHERE c.trace_id = f.trace_id)"""  # noqa: S608
_OF_CHANGED = f"FROM main.{CHANGED} c CROSS JOIN spans s ON s.trace_id = c.trace_id"
_OF_ALL = "FROM spans s"


class Space(NamedTuple):
    """Number of spans and approximate bytes of a trace."""

    spans: int
    size: int


def newest_spans(connection: sqlite3.Connection) -> dict[str, str | None]:
    """Return the start of each trace's latest span."""
    kept, source = _sources(connection)
    query = f"SELECT s.trace_id, MAX(s.started_at) {source} GROUP BY s.trace_id"
    if kept:
        query += f" UNION ALL SELECT f.trace_id, f.newest {_KEPT}"
    return dict(connection.execute(query).fetchall())


def spaces(connection: sqlite3.Connection, trace_ids: Sequence[str]) -> dict[str, Space]:
    """Return the size of each of these traces."""
    kept, source = _sources(connection)
    query = f"SELECT s.trace_id, {_SIZE} {source} GROUP BY s.trace_id"
    if kept:
        query += f" UNION ALL SELECT f.trace_id, f.spans, f.bytes {_KEPT}"
    found = {trace_id: Space(spans, _ROW_BYTES + size) for trace_id, spans, size in connection.execute(query)}
    empty = Space(0, _ROW_BYTES)
    return {trace_id: found.get(trace_id, empty) for trace_id in trace_ids}


def _sources(connection: sqlite3.Connection) -> tuple[bool, str]:
    kept = has_figures(connection)
    return kept, _OF_CHANGED if kept else _OF_ALL
