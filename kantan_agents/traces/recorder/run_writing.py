"""Writes the records of runs, inside the transaction of their spans."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from kantan_agents.traces.record_tables import CONTENTS, RUNS
from kantan_agents.traces.recorder.run_rows import Content, RunRow

_HASHES_PER_STATEMENT = 500
# SQLite executes a statement without the GIL, which a busy event loop returns late.
_ROWS_PER_STATEMENT = 50

_T = TypeVar("_T")


def write_runs(connection: sqlite3.Connection, rows: Sequence[RunRow]) -> None:
    """Write records and their items, inside a transaction."""
    new = _unwritten(connection, rows)
    if not new:
        return
    wanted = {content.hash: content for row in new for content in row.contents}
    ids = _ids_of(connection, wanted)
    uses: Counter[int] = Counter()
    values: list[tuple[Any, ...]] = []
    for row in new:
        # Each item counts once for a record.
        own = [ids[content.hash] for content in row.contents]
        uses.update(set(own))
        values.append((row.trace_id, row.run_id, _packed(own), row.body))
    for chunk in _chunks(values, _ROWS_PER_STATEMENT):
        rows_of_chunk = ",".join(["(?, ?, ?, ?)"] * len(chunk))
        connection.execute(
            f"INSERT INTO {RUNS}(trace_id, run_id, contents, body) VALUES {rows_of_chunk}",  # noqa: S608
            list(chain.from_iterable(chunk)),
        )
    _count(connection, uses)


def has_run(connection: sqlite3.Connection, row: RunRow) -> bool:
    """Return whether a record is in the database."""
    query = f"SELECT 1 FROM {RUNS} WHERE trace_id = ? AND run_id = ?"  # noqa: S608
    return connection.execute(query, (row.trace_id, row.run_id)).fetchone() is not None


def _unwritten(connection: sqlite3.Connection, rows: Sequence[RunRow]) -> list[RunRow]:
    # A batch is written twice if the first attempt's result is unknown.
    written: set[tuple[str, bytes]] = set()
    for chunk in _chunks(rows, _HASHES_PER_STATEMENT):
        marks = ",".join("?" * len(chunk))
        query = f"SELECT trace_id, run_id FROM {RUNS} WHERE trace_id IN ({marks})"  # noqa: S608
        written.update(map(tuple, connection.execute(query, [row.trace_id for row in chunk])))
    return [row for row in rows if (row.trace_id, row.run_id) not in written]


def _ids_of(connection: sqlite3.Connection, wanted: dict[bytes, Content]) -> dict[bytes, int]:
    ids = _found(connection, list(wanted))
    missing = [content for hashed, content in wanted.items() if hashed not in ids]
    parts = {part.hash: part for content in missing for part in content.parts}
    if not parts:
        ids.update(_add(connection, missing, {}))
        return ids
    simple = {content.hash: content for content in missing if not content.parts}
    of_parts = _ids_of(connection, {**simple, **parts})
    composed = [content for content in missing if content.parts]
    return {**ids, **of_parts, **_add(connection, composed, of_parts)}


def _add(
    connection: sqlite3.Connection, contents: Sequence[Content], parts: Mapping[bytes, int]
) -> dict[bytes, int]:
    added: dict[bytes, int] = {}
    uses: Counter[int] = Counter()
    for content in contents:
        places = [parts[part.hash] for part in content.parts]
        uses.update(set(places))
        cursor = connection.execute(
            f"INSERT INTO {CONTENTS}(hash, kind, uses, parts, body) VALUES (?, ?, 0, ?, ?)",  # noqa: S608
            (content.hash, content.kind, _packed(places) if content.parts else None, content.body),
        )
        added[content.hash] = int(cursor.lastrowid or 0)
    _count(connection, uses)
    return added


def _found(connection: sqlite3.Connection, hashes: Sequence[bytes]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for chunk in _chunks(hashes, _HASHES_PER_STATEMENT):
        query = f"SELECT hash, id FROM {CONTENTS} WHERE hash IN ({','.join('?' * len(chunk))})"  # noqa: S608
        found.update(connection.execute(query, chunk))
    return found


def _count(connection: sqlite3.Connection, uses: Counter[int]) -> None:
    statement = f"UPDATE {CONTENTS} SET uses = uses + ? WHERE id = ?"  # noqa: S608
    connection.executemany(statement, [(count, content) for content, count in uses.items()])


def _chunks(rows: Sequence[_T], size: int) -> Iterable[Sequence[_T]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _packed(ids: Iterable[int]) -> str:
    return json.dumps(list(ids), separators=(",", ":"))
