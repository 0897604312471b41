"""Fills the search index in steps."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from kantan_agents.traces.database_url import Place
from kantan_agents.traces.search_index import (
    DOCUMENTS,
    PART_ROWIDS,
    PARTS,
    UNINDEXED,
    create_part,
    drop_part,
    has_index,
    part_name,
)
from kantan_agents.traces.store.connection import changing
from kantan_agents.traces.trigrams import indexed_text

# One transaction; other writers wait for a few hundredths of a second.
_TRACES_AT_ONCE = 64
_CHARACTERS_AT_ONCE = 500_000
_WAIT_SECONDS = 0.05

# Characters of unique lines. A longer trace would block other writers for seconds.
_LONGEST = 5_000_000

# A part is dropped in one transaction too.
_LARGEST_PART = 32_000_000
_MOST_DOCUMENTS = 32_768

# SQLite executes a statement without the GIL; older versions accept at most 999 values.
_ROWS_PER_STATEMENT = 80


@attrs.frozen
class _Trace:
    note: int
    last_seq: int
    spans: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        return sum(size for _, size in self.spans)


def index_new(path: Place, seconds: float, at_least: int) -> bool:
    """Index for about ``seconds`` if ``at_least`` traces wait; return whether as many remain.

    E60 loses nothing.
    """
    deadline = time.monotonic() + seconds
    with changing(path, wait=_WAIT_SECONDS) as connection:
        # The recorder owns the log, and checkpoints it less often.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        while len(_notes(connection, at_least)) == at_least:
            connection.execute("BEGIN IMMEDIATE")
            try:
                index_some(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            if time.monotonic() > deadline:
                return True
    return False


def index_some(connection: sqlite3.Connection, most: int = _TRACES_AT_ONCE) -> tuple[int, int]:
    """Index up to ``most`` traces, inside a transaction; return how many are done and skipped."""
    chosen = [*_fitting(_to_index(connection, _notes(connection, min(most, _TRACES_AT_ONCE))))]
    texts = [(trace, indexed_text(_texts(connection, trace))) for trace in chosen]
    skipped = [(trace.note,) for trace, text in texts if len(text) > _LONGEST]
    done = [(trace, text) for trace, text in texts if len(text) <= _LONGEST]
    if any(text for _, text in done):
        _add(connection, [(trace, text) for trace, text in done if text])
    connection.executemany(f"UPDATE main.{UNINDEXED} SET skipped = 1 WHERE note = ?", skipped)  # noqa: S608
    connection.execute(
        f"DELETE FROM main.{UNINDEXED} WHERE note IN (SELECT value FROM json_each(?))",  # noqa: S608
        (json.dumps([trace.note for trace, _ in done]),),
    )
    return len(chosen), len(skipped)


def drop_sparse_part(connection: sqlite3.Connection) -> bool:
    """Drop a part with mostly deleted documents, in a transaction, if any."""
    if not has_index(connection):
        return False
    query = f"""SELECT p.part FROM main.{PARTS} p WHERE p.documents > 0 AND 2 * (
    SELECT COUNT(*) FROM main.{DOCUMENTS} d
    WHERE d.document >= p.part * {PART_ROWIDS} AND d.document < (p.part + 1) * {PART_ROWIDS}
    ) < p.documents LIMIT 1"""  # noqa: S608
    row = connection.execute(query).fetchone()
    if row is not None:
        drop_part(connection, row[0])
    return row is not None


def _notes(connection: sqlite3.Connection, most: int) -> list[int]:
    if not has_index(connection):
        return []
    query = f"""SELECT json_group_array(note) FROM (
    SELECT note FROM main.{UNINDEXED} WHERE NOT skipped ORDER BY note LIMIT ?)"""  # noqa: S608
    found: list[int] = json.loads(connection.execute(query, (most,)).fetchone()[0])
    return found


def _to_index(connection: sqlite3.Connection, notes: Sequence[int]) -> Iterator[_Trace]:
    last = f"(SELECT MAX(d.last_seq) FROM main.{DOCUMENTS} d WHERE d.trace_id = u.trace_id)"  # noqa: S608
    size = " + ".join(f"COALESCE(LENGTH(CAST(s.{column} AS BLOB)), 0)" for column in ("input", "output"))
    query = f"""SELECT json_group_array(json_array(u.note, COALESCE(s.ingest_seq, 0), s.rowid, {size}))
    FROM main.{UNINDEXED} u CROSS JOIN main.spans s ON s.trace_id = u.trace_id
    WHERE u.note IN (SELECT value FROM json_each(?))
    AND COALESCE(s.input, s.output) IS NOT NULL AND COALESCE(s.ingest_seq, 0) > COALESCE({last}, -1)"""  # noqa: S608
    found: dict[int, list[list[int]]] = {note: [] for note in notes}
    for note, *span in json.loads(connection.execute(query, (json.dumps(notes),)).fetchone()[0]):
        found[note].append(span)
    for note, spans in found.items():
        last_seq = max((seq for seq, _, _ in spans), default=0)
        yield _Trace(note, last_seq, tuple((rowid, length) for _, rowid, length in spans))


def _fitting(traces: Iterable[_Trace]) -> Iterator[_Trace]:
    size = 0
    for trace in traces:
        size += trace.size
        if size > _CHARACTERS_AT_ONCE and size > trace.size:
            return
        yield trace


def _texts(connection: sqlite3.Connection, trace: _Trace) -> Iterator[str]:
    for rowids in _slices(trace.spans):
        # In one row, because the GIL is released for each. As bytes, because of invalid UTF-8.
        query = """SELECT CAST(json_group_array(json_array(CAST(input AS TEXT), CAST(output AS TEXT)))
        AS BLOB) FROM main.spans WHERE rowid IN (SELECT value FROM json_each(?))"""
        (found,) = connection.execute(query, (json.dumps(rowids),)).fetchone()
        for texts in json.loads(found.decode("utf-8", "replace"), strict=False):
            yield from (text for text in texts if text is not None)
        time.sleep(0)  # an event loop may wait for the GIL


def _slices(spans: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    rowids: list[int] = []
    total = 0
    for rowid, size in spans:
        rowids.append(rowid)
        total += size
        if total > _CHARACTERS_AT_ONCE:
            yield rowids
            rowids, total = [], 0
    if rowids:
        yield rowids


def _add(connection: sqlite3.Connection, texts: Sequence[tuple[_Trace, str]]) -> None:
    part, documents = _open_part(connection)
    first = part * PART_ROWIDS + documents
    _insert(
        connection,
        f"main.{part_name(part)}(rowid, text)",
        "(?, ?)",
        [(first + place, text) for place, (_, text) in enumerate(texts)],
    )
    rows = [(first + place, trace.note, trace.last_seq) for place, (trace, _) in enumerate(texts)]
    trace_id = f"(SELECT trace_id FROM main.{UNINDEXED} WHERE note = ?)"  # noqa: S608
    _insert(connection, f"main.{DOCUMENTS}(document, trace_id, last_seq)", f"(?, {trace_id}, ?)", rows)
    characters = sum(len(text) for _, text in texts)
    connection.execute(
        f"UPDATE main.{PARTS} SET documents = documents + ?, characters = characters + ? WHERE part = ?",  # noqa: S608
        (len(texts), characters, part),
    )


def _open_part(connection: sqlite3.Connection) -> tuple[int, int]:
    query = f"SELECT part, documents, characters FROM main.{PARTS} ORDER BY part DESC LIMIT 1"  # noqa: S608
    row = connection.execute(query).fetchone()
    if row is not None and row[1] < _MOST_DOCUMENTS and row[2] < _LARGEST_PART:
        return row[0], row[1]
    return create_part(connection), 0


def _insert(connection: sqlite3.Connection, into: str, row: str, rows: Sequence[tuple[Any, ...]]) -> None:
    for start in range(0, len(rows), _ROWS_PER_STATEMENT):
        chunk = rows[start : start + _ROWS_PER_STATEMENT]
        values = ",".join([row] * len(chunk))
        connection.execute(f"INSERT INTO {into} VALUES {values}", [v for one in chunk for v in one])  # noqa: S608
