"""Finds the traces that match filters, latest first.

kantan-llm's search decides, except for keywords, where ``%`` and ``_`` are its wildcards. Each searched
window is four times as large as the one before: a rare filter costs about one search of the whole file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing
from datetime import tzinfo
from itertools import islice
from typing import Any, NamedTuple

from kantan_llm.tracing import TraceQuery

from kantan_agents.core.answers import CUT_SPAN
from kantan_agents.traces.metadata import JUDGE_SPAN, REFUSAL_SPAN, RUN_SPAN
from kantan_agents.traces.store.candidates import newest_first
from kantan_agents.traces.store.filters import Filters
from kantan_agents.traces.store.runs import traces_with_inner_runs
from kantan_agents.traces.store.span_records import KantanSearch, mapping_of
from kantan_agents.traces.store.summarize import ended_as_wanted
from kantan_agents.traces.tables import create_views, storable_json, storable_text, valid_json
from kantan_agents.traces.trigrams import fold, lower_ascii

_FIRST_WINDOW = 256
_GROWTH = 4
_LARGEST_WINDOW = 65_536

# kantan-llm lists tool calls, but hosted tools only in the output items of a `response` span: in the list, or
# in the "function" of an item, not in arguments.
_ITEM = "'$[' || CAST(substr(c.path, 3) AS INTEGER) || ']"
_CALL = f"""EXISTS (
  SELECT 1 FROM spans s, json_tree({{calls}}) c
  WHERE s.trace_id = t.id AND {{calls}} IS NOT NULL AND s.span_type IN ({{types}})
  AND (c.key = 'name' AND c.atom = :tool OR c.key = 'type' AND c.atom = :tool || '_call')
  AND c.path IN ({_ITEM}', {_ITEM}.function'))"""  # noqa: S608

# A streamed chat completion is a whole response, as the only item.
_STREAMED = f"""EXISTS (
  SELECT 1 FROM spans s, json_tree({valid_json("s.structured_json")}) c
  WHERE s.trace_id = t.id AND s.span_type = 'generation'
  AND c.key = 'name' AND c.atom = :tool
  AND c.path = '$[0].output[' || CAST(substr(c.path, 13) AS INTEGER) || ']'
  AND EXISTS (
    SELECT 1 FROM json_each({valid_json("s.structured_json")}, '$[0]') o
    WHERE o.key = 'object' AND o.atom = 'response'))"""  # noqa: S608

_CALLED = f"""(
EXISTS (SELECT 1 FROM spans s WHERE s.trace_id = t.id AND s.span_type = 'function' AND s.name = :tool)
OR EXISTS (
  SELECT 1 FROM spans s
  WHERE s.trace_id = t.id AND s.span_type = 'custom' AND s.name = '{REFUSAL_SPAN}'
  AND json_extract({valid_json("s.raw_json")}, '$.span_data.data.tool') = :tool)
OR {_CALL.format(calls=valid_json("s.tool_calls_json"), types="'response', 'generation'")}
OR {_CALL.format(calls=valid_json("s.structured_json"), types="'response'")}
OR {_STREAMED})"""  # noqa: S608

_JUDGED_BELOW = f"""EXISTS (
  SELECT 1 FROM spans s
  WHERE s.trace_id = t.id AND s.span_type = 'custom' AND s.name = '{JUDGE_SPAN}'
  AND json_extract({valid_json("s.rubric_json")}, '$.score') < :score)"""  # noqa: S608

_NAMED = """EXISTS (
  SELECT 1 FROM spans s
  WHERE s.trace_id = t.id AND s.span_type = 'custom' AND s.name = '{}')"""
_REFUSED = _NAMED.format(REFUSAL_SPAN)
_CUT = _NAMED.format(CUT_SPAN)

# LIKE has wildcards, a limit on length, and no case outside ASCII. A value with more bytes than characters is
# not ASCII: only that is folded in Python, which is slower than lower().
_IN_TEXT = (
    "(instr(lower({text}), :{word}) OR instr(lower({text}), :folded_{word})"
    " OR length(CAST({text} AS BLOB)) <> length({text}) AND instr(fold({text}), :folded_{word}))"
)
_CONTAINS = (
    "EXISTS (SELECT 1 FROM spans s WHERE s.trace_id = t.id AND ("  # noqa: S608
    + " OR ".join(_IN_TEXT.replace("{text}", f"COALESCE(s.{column}, '')") for column in ("input", "output"))
    + "))"
)

# In SQLite, a string or an array is larger than any number, so it never matches as a score.


def find(
    connection: sqlite3.Connection, filters: Filters, limit: int | None, tz: tzinfo, newest: int
) -> list[str]:
    """Return the ids of matching traces, latest first; search only as far as needed."""
    # SQLite allows changes of functions and views only while no statement runs: so this is first, and closing
    # the window last.
    _define_functions(connection, filters)
    query = filters.query()
    if query is not None or filters.has_failed is not None:
        create_views(connection, by_trace=True)
    connection.execute("BEGIN")  # the index and the traces must be read in the same state
    try:
        return _find(connection, _Search(filters, query, newest), limit, tz)
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")


class _Search(NamedTuple):
    filters: Filters
    query: TraceQuery | None
    newest: int


def _find(connection: sqlite3.Connection, wanted: _Search, limit: int | None, tz: tzinfo) -> list[str]:
    filters, query, newest = wanted
    if query is None:
        with closing(_candidates(connection, filters, newest)) as candidates:
            ids = (row["id"] for row in candidates)
            return [*islice(ended_as_wanted(connection, ids, filters.has_failed), limit)]
    with (
        closing(_Window(connection, inner_runs=bool(filters.metadata))) as window,
        closing(_candidates(connection, filters, newest)) as candidates,
    ):
        search = KantanSearch(connection, tz)
        # A common filter needs only the first traces.
        first = _FIRST_WINDOW if limit is None else min(max(limit, 1), _FIRST_WINDOW)
        found = _passing(candidates, window, search, query, first)
        return [*islice(ended_as_wanted(connection, found, filters.has_failed), limit)]


def _passing(
    candidates: Iterator[sqlite3.Row], window: _Window, search: KantanSearch, query: TraceQuery, size: int
) -> Iterator[str]:
    while shown := [*islice(candidates, size)]:
        window.show(shown)
        found = {record.trace_id for record in search.search_traces(query=query)}
        yield from (row["id"] for row in shown if row["id"] in found)
        size = min(size * _GROWTH, _LARGEST_WINDOW)


def _candidates(
    connection: sqlite3.Connection, filters: Filters, newest: int
) -> Generator[sqlite3.Row, None, None]:
    conditions = ["1"]
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
        word = f"word{number}"
        conditions.append(_CONTAINS.format(word=word))
        values |= {word: lower_ascii(keyword), f"folded_{word}": fold(keyword)}
    return newest_first(connection, filters.keywords, " AND ".join(conditions), values, newest)


class _Window:
    """Restricts the view ``traces``, and adds a row for each inner run."""

    def __init__(self, connection: sqlite3.Connection, *, inner_runs: bool) -> None:
        self._connection = connection
        self._with_inner_runs = traces_with_inner_runs(connection) if inner_runs else set()
        connection.create_function("run_metadata", 2, _run_metadata, deterministic=True)
        connection.execute("CREATE TEMP TABLE shown(position INTEGER, metadata_json TEXT)")
        connection.execute("DROP VIEW temp.traces")
        # CROSS JOIN fixes the order: the window is small, the table is large.
        connection.execute(
            "CREATE TEMP VIEW traces AS SELECT t.id AS id, t.workflow_name AS workflow_name, "
            "t.group_id AS group_id, COALESCE(w.metadata_json, t.metadata_json) AS metadata_json "
            "FROM temp.shown w CROSS JOIN all_traces t ON t.rowid = w.position"
        )

    def close(self) -> None:
        self._connection.execute("DROP VIEW temp.traces")
        self._connection.execute("CREATE TEMP VIEW traces AS SELECT * FROM all_traces")
        self._connection.execute("DROP TABLE temp.shown")

    def show(self, candidates: list[sqlite3.Row]) -> None:
        self._connection.execute("DELETE FROM temp.shown")
        # Oldest first: fastest to read.
        positions = [(row["position"],) for row in reversed(candidates)]
        self._connection.executemany("INSERT INTO temp.shown(position) VALUES(?)", positions)
        self._connection.executemany(
            "INSERT INTO temp.shown SELECT t.rowid, run_metadata(t.metadata_json, s.raw_json) "  # noqa: S608
            "FROM all_traces t CROSS JOIN spans s ON s.trace_id = t.id WHERE t.rowid = ? "
            f"AND s.span_type = 'custom' AND s.name = '{RUN_SPAN}'",
            [(row["position"],) for row in candidates if row["id"] in self._with_inner_runs],
        )


def _run_metadata(metadata_json: str | None, raw_json: str | None) -> str:
    span_data = mapping_of(mapping_of(raw_json).get("span_data"))
    merged = {**mapping_of(metadata_json), **mapping_of(span_data.get("data"))}
    return storable_json(merged)


def _define_functions(connection: sqlite3.Connection, filters: Filters) -> None:
    """Define only the needed functions: Python is slower than SQLite."""
    if filters.has_special_keys:
        connection.create_function("json_extract", 2, _value_of_key, deterministic=True)
    if filters.keywords:
        connection.create_function("fold", 1, _fold, deterministic=True)


def _value_of_key(text: str | None, path: str) -> Any:
    value = mapping_of(text).get(path.removeprefix("$."))
    if isinstance(value, (dict, list)):
        return storable_json(value)
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, int) and value.bit_length() > 63:  # noqa: PLR2004 - SQLite's integers
        return float(value)
    return value


def _fold(text: Any) -> str:
    return fold(str(text))
