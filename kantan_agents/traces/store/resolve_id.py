"""Resolves a user's reference to a trace."""

from __future__ import annotations

import sqlite3

from kantan_agents.errors import TraceNotFoundError
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.ids import trace_id_of
from kantan_agents.traces.metadata import RUN_SPAN
from kantan_agents.traces.store.filters import check_text
from kantan_agents.traces.tables import valid_json

LAST = "LAST"
_LISTED = 3
# As in `kantan-agents traces list`. Shorter endings would match by accident.
SHORT_ID = 8
_HIGHEST = "\U0010ffff"

_RUN_IDS = f"""
SELECT rowid AS position, id AS trace_id, json_extract(metadata_json, '$.agent_run_id') AS run_id
FROM all_traces
UNION ALL
SELECT t.rowid, t.id,
  json_extract({valid_json("s.raw_json")}, '$.span_data.data.agent_run_id')
FROM spans s JOIN all_traces t ON t.id = s.trace_id
WHERE s.name = '{RUN_SPAN}' AND s.span_type = 'custom'
"""  # noqa: S608


def resolve_trace_id(connection: sqlite3.Connection, wanted: str, path: Place) -> str:
    """Return the id of the trace that ``wanted`` names.

    It is a trace id, a run id, a unique prefix of either, the unique end of a trace id, or ``LAST``.
    """
    check_text("trace_id", wanted)
    if wanted == LAST:
        found = _ids(connection, "SELECT id FROM all_traces ORDER BY rowid DESC LIMIT 1", ())
        if not found:
            raise TraceNotFoundError(trace_id=wanted, path=str(path), reason="it has no traces yet")
        return found[0]
    if _ids(connection, "SELECT id FROM all_traces WHERE id = ?", (wanted,)):
        return wanted
    found = (
        _beginning_with(connection, wanted)
        or _ending_with(connection, wanted)
        or _with_run(connection, wanted)
    )
    if len(found) != 1:
        raise TraceNotFoundError(trace_id=wanted, path=str(path), reason=_reason(found))
    return found[0]


def _beginning_with(connection: sqlite3.Connection, beginning: str) -> list[str]:
    with_prefix = trace_id_of(beginning)
    return _ids(
        connection,
        "SELECT id FROM all_traces WHERE id >= ? AND id < ? OR id >= ? AND id < ? ORDER BY rowid DESC",
        (beginning, beginning + _HIGHEST, with_prefix, with_prefix + _HIGHEST),
    )


def _ending_with(connection: sqlite3.Connection, end: str) -> list[str]:
    if len(end) < SHORT_ID:
        return []
    return _ids(
        connection,
        "SELECT id FROM all_traces WHERE substr(id, -length(?)) = ? ORDER BY rowid DESC",
        (end, end),
    )


def _with_run(connection: sqlite3.Connection, beginning: str) -> list[str]:
    return _ids(
        connection,
        f"SELECT trace_id AS id FROM ({_RUN_IDS}) AS runs "  # noqa: S608
        "WHERE substr(run_id, 1, length(?)) = ? GROUP BY trace_id ORDER BY MAX(position) DESC",
        (beginning, beginning),
    )


def _ids(connection: sqlite3.Connection, sql: str, parameters: tuple[str, ...]) -> list[str]:
    return [row["id"] for row in connection.execute(sql, parameters)]


def _reason(found: list[str]) -> str:
    if not found:
        return "no trace or run has an id with this beginning or end"
    more = ", ..." if len(found) > _LISTED else ""
    return f"{len(found)} traces have this beginning or end: {', '.join(found[:_LISTED])}{more}"
