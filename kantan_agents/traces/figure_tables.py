"""Tables with the statistics of each trace, and triggers that note changed traces.

Other programs do not know these tables, so triggers run for every writer, in its transaction. Readers compute
the statistics of traces in ``CHANGED``.

A version that computes them differently must rename the tables.
"""

from __future__ import annotations

import sqlite3

from kantan_agents.traces.schema import count_existing

CHANGED = "kantan_agents_changed"
"""Traces with outdated statistics; ``unstorable`` if SQLite cannot hold them."""
TRACE_FIGURES = "kantan_agents_trace_figures"
"""Of each trace: latest start, number of spans, approximate bytes."""
RUN_FIGURES = "kantan_agents_run_figures"
VERDICTS = "kantan_agents_verdicts"
"""Of each score: the judged trace or, without one, the prompt."""

TABLES = {
    CHANGED: "trace_id TEXT PRIMARY KEY, unstorable INTEGER NOT NULL DEFAULT 0",
    TRACE_FIGURES: "trace_id TEXT PRIMARY KEY, newest TEXT, spans INTEGER NOT NULL, bytes INTEGER NOT NULL",
    RUN_FIGURES: (
        "trace_id TEXT, place INTEGER, prompt TEXT, version TEXT, is_judge INTEGER NOT NULL, "
        "started_at TEXT, failed INTEGER NOT NULL, microseconds INTEGER, input_tokens INTEGER NOT NULL, "
        "output_tokens INTEGER NOT NULL, total_tokens INTEGER NOT NULL, PRIMARY KEY(trace_id, place)"
    ),
    VERDICTS: (
        "trace_id TEXT, place INTEGER, score REAL NOT NULL, judged TEXT, prompt TEXT, version TEXT, "
        "PRIMARY KEY(trace_id, place)"
    ),
}
FIGURES = (TRACE_FIGURES, RUN_FIGURES, VERDICTS)


def _missing(trace_id: str) -> str:
    return f"NOT EXISTS (SELECT 1 FROM {CHANGED} c WHERE c.trace_id = {trace_id})"  # noqa: S608


def _note(trace_id: str, source: str = "WHERE 1") -> str:
    # Not INSERT OR IGNORE: the conflict clause of the firing statement would override it.
    return (
        f"INSERT INTO {CHANGED}(trace_id) SELECT {trace_id} {source} "
        f"AND {trace_id} IS NOT NULL AND {_missing(trace_id)};"
    )


def _noting(event: str, *trace_ids: str) -> str:
    # Most traces are noted already. The condition is much cheaper than the body.
    condition = " OR ".join(map(_missing, trace_ids))
    return f"{event} WHEN {condition} BEGIN {' '.join(map(_note, trace_ids))} END"


TRIGGERS = {
    "kantan_agents_span_added": _noting("BEFORE INSERT ON spans", "NEW.trace_id"),
    # REPLACE fires no delete triggers, so a span may leave its trace unnoticed.
    "kantan_agents_span_replaced": (
        "BEFORE INSERT ON spans WHEN EXISTS (SELECT 1 FROM spans s WHERE s.id = NEW.id) "  # noqa: S608
        f"BEGIN {_note('s.trace_id', 'FROM spans s WHERE s.id = NEW.id')} END"
    ),
    "kantan_agents_span_updated": _noting("AFTER UPDATE ON spans", "OLD.trace_id", "NEW.trace_id"),
    "kantan_agents_span_deleted": _noting("AFTER DELETE ON spans", "OLD.trace_id"),
    "kantan_agents_trace_added": _noting("BEFORE INSERT ON traces", "NEW.id"),
    "kantan_agents_trace_updated": _noting("AFTER UPDATE ON traces", "OLD.id", "NEW.id"),
    "kantan_agents_trace_deleted": _noting("AFTER DELETE ON traces", "OLD.id"),
}
_NAMES = {*TABLES, *TRIGGERS}


def has_figures(connection: sqlite3.Connection) -> bool:
    """Return whether the tables and their triggers exist."""
    return count_existing(connection, _NAMES) == len(_NAMES)


def keep_figures(connection: sqlite3.Connection) -> None:
    """Create missing parts, outside a transaction; mark every trace as changed."""
    if has_figures(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not has_figures(connection):  # another process may have been first
            _create(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _create(connection: sqlite3.Connection) -> None:
    for name, columns in TABLES.items():
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE TABLE {name}({columns}) WITHOUT ROWID")
    for name, body in TRIGGERS.items():
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        connection.execute(f"CREATE TRIGGER {name} {body}")
    connection.execute(f"INSERT INTO {CHANGED}(trace_id) SELECT id FROM traces WHERE id IS NOT NULL")  # noqa: S608


def count_changed(connection: sqlite3.Connection, most: int = 1_000) -> int:
    """Count the traces to store, up to ``most``."""
    query = f"SELECT COUNT(*) FROM (SELECT 1 FROM {CHANGED} WHERE unstorable = 0 LIMIT ?)"  # noqa: S608
    return int(connection.execute(query, (most,)).fetchone()[0])
