"""Selects the traces that meet a condition, latest first, with or without the search index.

A frequent word is found sooner without the index. So a few of the latest traces are read first, and the index
may name only a limited number. If it exceeds the limit, that many traces are read, and the limit grows.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kantan_agents.support.log import get_logger
from kantan_agents.traces.search_index import DAMAGED, DOCUMENTS, PARTS, UNINDEXED, has_index, part_name
from kantan_agents.traces.trigrams import match_query

_log = get_logger("kantan_agents.tracing")

_BEFORE_INDEX = 32
_FIRST = 128
_GROWTH = 4

# Reading more unindexed traces would take longer than the index saves.
_MOST_UNINDEXED = 8_192

NEWEST = 2**63 - 1

_TRACES_OF_DOCUMENTS = (
    f"SELECT trace_id FROM main.{DOCUMENTS} WHERE document IN (SELECT value FROM json_each(?))"  # noqa: S608
)


class _Window(NamedTuple):
    condition: str
    values: dict[str, Any]


def newest_first(
    connection: sqlite3.Connection,
    words: Sequence[str],
    condition: str,
    values: Mapping[str, Any],
    newest: int = NEWEST,
) -> Generator[sqlite3.Row, None, None]:
    """Yield ``position`` (the rowid) and ``id`` of the traces that meet the condition.

    The connection is in a transaction, so that the index and the traces are consistent. ``condition`` is SQL
    on ``main.traces t``, and requires ``words``.
    """
    queries = [query for query in map(match_query, words) if query is not None]
    if queries:
        looked_at, oldest = 0, newest
        for row in connection.execute(
            f"SELECT t.rowid AS position, t.id AS id, {condition} AS passes FROM main.traces t "  # noqa: S608
            "WHERE t.rowid <= :newest ORDER BY t.rowid DESC LIMIT :count",
            {**values, "newest": newest, "count": _BEFORE_INDEX},
        ):
            looked_at, oldest = looked_at + 1, row["position"]
            if row["passes"]:
                yield row
        if looked_at < _BEFORE_INDEX:
            return
        newest = oldest - 1
    for window in _windows(connection, queries, newest):
        yield from connection.execute(
            "SELECT t.rowid AS position, t.id AS id FROM main.traces t "  # noqa: S608
            f"WHERE {window.condition} AND {condition} ORDER BY t.rowid DESC",
            {**values, **window.values},
        )


def _windows(connection: sqlite3.Connection, queries: Sequence[str], newest: int) -> Iterator[_Window]:
    size = _FIRST
    try:
        unindexed = _unindexed(connection) if queries and has_index(connection) else None
        while unindexed is not None:
            found = _found(connection, queries, size)
            if found is not None:
                positions = json.dumps([*found.union(unindexed)])
                condition = "t.rowid IN (SELECT value FROM json_each(:positions)) AND t.rowid <= :newest"
                yield _Window(condition, {"positions": positions, "newest": newest})
                return
            oldest = _oldest_of(connection, newest, size)
            if oldest is None:
                return
            yield _between(oldest, newest)
            newest, size = oldest - 1, size * _GROWTH
    except sqlite3.DatabaseError as error:
        if "no such" not in str(error):  # this SQLite lacks FTS5 or its trigrams
            _log.warning(DAMAGED, reason=str(error))
    yield _Window("t.rowid <= :newest", {"newest": newest})


def _between(oldest: int, newest: int) -> _Window:
    return _Window("t.rowid BETWEEN :oldest AND :newest", {"oldest": oldest, "newest": newest})


def _unindexed(connection: sqlite3.Connection) -> set[int] | None:
    """Return None if there are too many."""
    query = f"SELECT trace_id FROM main.{UNINDEXED} LIMIT {_MOST_UNINDEXED + 1}"  # noqa: S608
    count = connection.execute(f"SELECT COUNT(*) FROM ({query})").fetchone()[0]  # noqa: S608
    return _positions(connection, query) if count <= _MOST_UNINDEXED else None


def _found(connection: sqlite3.Connection, queries: Sequence[str], most: int) -> set[int] | None:
    """Return None if each word is in more than ``most``."""
    found: set[int] | None = None
    for query in queries:
        documents = _documents(connection, query, most)
        if documents is not None:
            positions = _positions(connection, _TRACES_OF_DOCUMENTS, json.dumps(documents))
            # The words may be in different documents of the trace.
            found = positions if found is None else found & positions
    return found


def _documents(connection: sqlite3.Connection, query: str, most: int) -> list[int] | None:
    """Return None if there are more than ``most``."""
    found: list[int] = []
    parts = connection.execute(f"SELECT part FROM main.{PARTS} ORDER BY part DESC").fetchall()  # noqa: S608
    for (part,) in parts:
        name = part_name(part)
        statement = f"""SELECT json_group_array(rowid) FROM (
        SELECT rowid FROM main.{name} WHERE {name} MATCH ? LIMIT ?)"""  # noqa: S608
        left = most + 1 - len(found)
        found += json.loads(connection.execute(statement, (query, left)).fetchone()[0])
        if len(found) > most:
            return None
    return found


def _positions(connection: sqlite3.Connection, trace_ids: str, *values: str) -> set[int]:
    query = f"SELECT json_group_array(t.rowid) FROM ({trace_ids}) i JOIN main.traces t ON t.id = i.trace_id"  # noqa: S608
    return set(json.loads(connection.execute(query, values).fetchone()[0]))


def _oldest_of(connection: sqlite3.Connection, newest: int, size: int) -> int | None:
    query = (
        "SELECT MIN(p) FROM (SELECT rowid AS p FROM main.traces WHERE rowid <= ? ORDER BY rowid DESC LIMIT ?)"
    )
    oldest: int | None = connection.execute(query, (newest, size)).fetchone()[0]
    return oldest
