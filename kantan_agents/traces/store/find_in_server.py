"""Finds the traces that match filters in Postgres, as ``find`` in a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone, tzinfo
from itertools import islice
from typing import Any, Final

from kantan_agents.core.answers import CUT_SPAN
from kantan_agents.support.storable_text import storable_text
from kantan_agents.traces.metadata import JUDGE_SPAN, REFUSAL_SPAN, RUN_SPAN
from kantan_agents.traces.postgres.connection import ServerConnection, server_of
from kantan_agents.traces.postgres.dialect import PREFIX
from kantan_agents.traces.postgres.schema import has_trigrams
from kantan_agents.traces.store.filters import Filters
from kantan_agents.traces.store.summarize import ended_as_wanted
from kantan_agents.traces.trigrams import LENGTH, forms_of

_FIRST_WINDOW: Final = 256
_GROWTH: Final = 4
_BEFORE_INDEX: Final = 2

_MOST_CANDIDATES: Final = 20_000
"""If a word may be in more traces, the index saves nothing."""

_JSON: Final = f"{PREFIX}json"
_NUMBER: Final = f"{PREFIX}number"

_OF_TRACE: Final = "EXISTS (SELECT 1 FROM spans s WHERE s.trace_id = t.id AND {})"
_CUSTOM: Final = "s.span_type = 'custom' AND s.name = '{}'"
_ERROR: Final = _OF_TRACE.format("s.error_json IS NOT NULL AND s.error_json != 'null'")
_REFUSED: Final = _OF_TRACE.format(_CUSTOM.format(REFUSAL_SPAN))
_CUT: Final = _OF_TRACE.format(_CUSTOM.format(CUT_SPAN))

# In an item of the list, or in its "function"; not in the arguments.
_ITEM: Final = (
    "'strict $[*] ? (@.name == $tool || @.function.name == $tool "
    "|| @.type == $call || @.function.type == $call)'"
)
_CALL: Final = (
    f"COALESCE(jsonb_path_exists({_JSON}({{calls}}), {_ITEM}, jsonb_build_object('tool', %(tool)s::text, "
    "'call', %(tool)s::text || '_call'), true), false)"
)
_STREAMED: Final = (
    f"COALESCE(jsonb_path_exists({_JSON}(s.structured_json), "
    "'strict $[0] ? (@.object == \"response\").output[*] ? (@.name == $tool)', "
    "jsonb_build_object('tool', %(tool)s::text), true), false)"
)
_CALLED: Final = (
    _OF_TRACE.format(
        "(s.span_type = 'function' AND s.name = %(tool)s"
        f" OR {_CUSTOM.format(REFUSAL_SPAN)}"
        f" AND {_JSON}(s.raw_json) #>> '{{{{span_data,data,tool}}}}' = %(tool)s"
        f" OR s.span_type IN ('response', 'generation') AND {_CALL.format(calls='s.tool_calls_json')}"
        f" OR s.span_type = 'response' AND {_CALL.format(calls='s.structured_json')}"
        f" OR s.span_type = 'generation' AND {_STREAMED})"
    )
    .replace("{{", "{")
    .replace("}}", "}")
)

_JUDGED_BELOW: Final = _OF_TRACE.format(
    f"{_CUSTOM.format(JUDGE_SPAN)} AND {_NUMBER}({_JSON}(s.rubric_json) -> 'score') < %(score)s"
)

# A word is compared with the lower-case text, and with the folded text, which is stored if it differs. A word
# in ASCII has only one form.
_TEXTS: Final = ("lower(s.input)", "lower(s.output)", "s.folded_input", "s.folded_output")


def find_in_server(
    connection: sqlite3.Connection, filters: Filters, limit: int | None, tz: tzinfo, newest: int
) -> list[str]:
    """Return the ids of matching traces, as ``find``."""
    server = server_of(connection)
    connection.execute("BEGIN")  # the index and the traces must be read in the same state
    try:
        found = _passing(server, filters, limit, tz, newest)
        return [*islice(ended_as_wanted(connection, found, filters.has_failed), limit)]
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")


def _passing(
    server: ServerConnection, filters: Filters, limit: int | None, tz: tzinfo, newest: int
) -> Iterator[str]:
    conditions, values = _conditions(filters, tz)
    wanted = " AND ".join(conditions) or "true"
    size = _FIRST_WINDOW if limit is None else min(max(limit, 1), _FIRST_WINDOW)
    needs_index = any(len(word) >= LENGTH for word in filters.keywords)
    windows = 0
    while True:
        oldest = _oldest_of(server, newest, size)
        if oldest is None:
            return
        yield from _of_window(
            server, "t.rowid BETWEEN %(oldest)s AND %(newest)s", wanted, values, oldest, newest
        )
        newest, size, windows = oldest - 1, size * _GROWTH, windows + 1
        if needs_index and windows == _BEFORE_INDEX:
            candidates = _candidates(server, filters.keywords)
            if candidates is not None:
                values = {**values, "candidates": [*candidates]}
                chosen = "t.id = ANY(%(candidates)s) AND t.rowid <= %(newest)s"
                yield from _of_window(server, chosen, wanted, values, 0, newest)
                return


def _of_window(
    server: ServerConnection, chosen: str, wanted: str, values: dict[str, Any], oldest: int, newest: int
) -> list[str]:
    query = f"SELECT t.id FROM traces t WHERE {chosen} AND {wanted} ORDER BY t.rowid DESC"  # noqa: S608
    return [row[0] for row in server.native(query, {**values, "oldest": oldest, "newest": newest})]


def _oldest_of(server: ServerConnection, newest: int, size: int) -> int | None:
    query = """SELECT MIN(rowid) FROM (
    SELECT rowid FROM traces WHERE rowid <= %s ORDER BY rowid DESC LIMIT %s) AS chosen"""
    row = server.native(query, (newest, size)).fetchone()
    return None if row is None else row[0]


def _candidates(server: ServerConnection, words: Sequence[str]) -> set[str] | None:
    """Return None if the index is missing or saves nothing."""
    if not has_trigrams(server):
        return None
    found: set[str] | None = None
    for word in words:
        if len(word) < LENGTH:
            continue
        likes = {f"like{number}": _pattern(form) for number, form in enumerate(forms_of(word))}
        form = " OR ".join(f"{text} LIKE %({like})s" for like in likes for text in _TEXTS)
        query = f"""SELECT DISTINCT trace_id FROM (
        SELECT s.trace_id FROM spans s WHERE {form} LIMIT {10 * _MOST_CANDIDATES}) AS chosen"""  # noqa: S608
        rows = server.native(query, likes).fetchall()
        if len(rows) <= _MOST_CANDIDATES:
            ids = {row[0] for row in rows}
            found = ids if found is None else found & ids
    return found


def _pattern(form: str) -> str:
    escaped = form.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _conditions(filters: Filters, tz: tzinfo) -> tuple[list[str], dict[str, Any]]:
    conditions: list[str] = []
    values: dict[str, Any] = {"tool": filters.tool, "score": filters.rubric_below}
    if filters.tool is not None:
        conditions.append(_CALLED)
    if filters.has_denial is not None:
        conditions.append(_REFUSED if filters.has_denial else f"NOT {_REFUSED}")
    if filters.has_cut_answer is not None:
        conditions.append(_CUT if filters.has_cut_answer else f"NOT {_CUT}")
    if filters.rubric_below is not None:
        conditions.append(_JUDGED_BELOW)
    for number, keyword in enumerate(filters.keywords):
        words = {f"word{number}_{place}": form for place, form in enumerate(forms_of(keyword))}
        found = " OR ".join(f"strpos({text}, %({word})s) > 0" for word in words for text in _TEXTS)
        conditions.append(_OF_TRACE.format(f"({found})"))
        values |= words
    # A failed run has a span with an error.
    has_error = filters.has_error if filters.has_error is not None else filters.has_failed or None
    if has_error is not None:
        conditions.append(_ERROR if has_error else f"NOT {_ERROR}")
    conditions += _times(filters, tz, values)
    if filters.metadata:
        conditions.append(_metadata(filters, values))
    return conditions, {name: _stored(value) for name, value in values.items()}


def _times(filters: Filters, tz: tzinfo, values: dict[str, Any]) -> Iterator[str]:
    parts: list[str] = []
    for name, sign, time in (("from", ">=", filters.started_from), ("to", "<=", filters.started_to)):
        if time is not None:
            parts.append(f's.started_at {sign} %({name})s COLLATE "C"')
            values[name] = _utc_text(time, tz)
    if parts:
        yield _OF_TRACE.format(" AND ".join(parts))


def _utc_text(time: datetime, tz: tzinfo) -> str:
    aware = time if time.tzinfo is not None else time.replace(tzinfo=tz)
    return aware.astimezone(timezone.utc).isoformat()


def _metadata(filters: Filters, values: dict[str, Any]) -> str:
    """Compare metadata; an inner run's overrides the trace's."""
    own = _metadata_of(f"{_JSON}(t.metadata_json)", filters, values)
    merged = (
        f"(CASE WHEN jsonb_typeof({_JSON}(t.metadata_json)) = 'object' THEN {_JSON}(t.metadata_json) "
        "ELSE '{}' END || "
        f"CASE WHEN jsonb_typeof({_JSON}(s.raw_json) #> '{{span_data,data}}') = 'object' "
        f"THEN {_JSON}(s.raw_json) #> '{{span_data,data}}' ELSE '{{}}' END)"
    )
    inner = (
        f"EXISTS (SELECT 1 FROM spans s WHERE s.trace_id = t.id AND {_CUSTOM.format(RUN_SPAN)} "  # noqa: S608
        f"AND {_metadata_of(merged, filters, values)})"
    )
    return f"(({own}) OR {inner})"


def _metadata_of(source: str, filters: Filters, values: dict[str, Any]) -> str:
    parts: list[str] = []
    for number, (key, value) in enumerate(filters.metadata.items()):
        name = f"value{number}"
        values[f"key{number}"], values[name] = key, value
        found = f"({source} -> %(key{number})s)"
        if value is None:
            parts.append(f"COALESCE(jsonb_typeof({found}), 'null') = 'null'")
        elif isinstance(value, str):
            parts.append(f"jsonb_typeof({found}) = 'string' AND {found} #>> '{{}}' = %({name})s")
        elif isinstance(value, float):
            parts.append(f"{_NUMBER}({found})::double precision = %({name})s::double precision")
        else:
            parts.append(f"{_NUMBER}({found}) = %({name})s")
    return " AND ".join(parts)


def _stored(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return storable_text(value) if isinstance(value, str) else value
