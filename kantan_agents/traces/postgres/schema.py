"""The tables of a trace database in Postgres, and their migrations.

``folded_input`` and ``folded_output`` have folded strings, if they differ, for words with non-ASCII letters
that have a case.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from kantan_agents.support.log import get_logger
from kantan_agents.traces.figure_tables import CHANGED
from kantan_agents.traces.figure_tables import TABLES as FIGURE_TABLES
from kantan_agents.traces.postgres.connection import BEGIN_WRITING, ServerConnection
from kantan_agents.traces.postgres.functions import FUNCTIONS
from kantan_agents.traces.postgres.server_error import ServerError
from kantan_agents.traces.record_tables import STATEMENTS as RECORDS
from kantan_agents.traces.schema import COLUMNS, ForeignDatabaseError

VERSION: Final = 1
VERSIONS: Final = "kantan_agents_schema"

_MIGRATION_LOCK: Final = 0x6B616E74616F

# Durable runs share the schema; their tables may appear before or after these.
_DURABLE: Final = "kantan_agents_durable_"

_TEXT: Final = 'text COLLATE "C"'

OWN_COLUMNS: Final = ("folded_input", "folded_output", "week")

STATEMENTS: Final = (
    "CREATE SEQUENCE kantan_agents_traces_rowid",
    "CREATE SEQUENCE kantan_agents_spans_rowid",
    (
        f"CREATE TABLE traces(id {_TEXT} PRIMARY KEY, workflow_name {_TEXT}, group_id {_TEXT}, "
        f"metadata_json {_TEXT}, rowid bigint NOT NULL UNIQUE DEFAULT nextval('kantan_agents_traces_rowid'))"
    ),
    "CREATE TABLE spans("
    + ", ".join(f"{column} {'bigint' if column == 'ingest_seq' else _TEXT}" for column in COLUMNS["spans"])
    + f", folded_input {_TEXT}, folded_output {_TEXT}, week date NOT NULL, "
    "rowid bigint NOT NULL DEFAULT nextval('kantan_agents_spans_rowid'), PRIMARY KEY (id, week)"
    ") PARTITION BY RANGE (week)",
    "CREATE TABLE kantan_agents_spans_undated PARTITION OF spans DEFAULT",
    # As in a file; see `schema.INDEXES`.
    "CREATE INDEX kantan_agents_spans_of_trace ON spans(trace_id, ingest_seq)",
    "CREATE INDEX kantan_agents_spans_by_name ON spans(name, span_type, trace_id)",
    (
        "CREATE INDEX kantan_agents_spans_with_error ON spans(trace_id) "
        "WHERE error_json IS NOT NULL AND error_json != 'null'"
    ),
    "CREATE INDEX kantan_agents_spans_in_order ON spans(rowid)",
    *FUNCTIONS,
)

_FIGURES: Final = tuple(f"CREATE TABLE {name}({columns})" for name, columns in FIGURE_TABLES.items())


def _noting(name: str, event: str, table: str, rows: str) -> str:
    return (
        f"CREATE TRIGGER {name} AFTER {event} ON {table} REFERENCING {rows} TABLE AS changed_rows "
        f"FOR EACH STATEMENT EXECUTE FUNCTION kantan_agents_note_{table}()"
    )


def _note(table: str, trace_id: str) -> str:
    return (
        f"CREATE OR REPLACE FUNCTION kantan_agents_note_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ "  # noqa: S608
        f"BEGIN INSERT INTO {CHANGED}(trace_id) SELECT DISTINCT {trace_id} FROM changed_rows "
        f"WHERE {trace_id} IS NOT NULL ON CONFLICT DO NOTHING; RETURN NULL; END $$"
    )


# Triggers note changed traces once for each statement, not for each row.
_NOTES: Final = (
    _note("spans", "trace_id"),
    _note("traces", "id"),
    _noting("kantan_agents_span_added", "INSERT", "spans", "NEW"),
    _noting("kantan_agents_span_replaced", "UPDATE", "spans", "OLD"),
    _noting("kantan_agents_span_updated", "UPDATE", "spans", "NEW"),
    _noting("kantan_agents_span_deleted", "DELETE", "spans", "OLD"),
    _noting("kantan_agents_trace_added", "INSERT", "traces", "NEW"),
    _noting("kantan_agents_trace_updated", "UPDATE", "traces", "NEW"),
    _noting("kantan_agents_trace_deleted", "DELETE", "traces", "OLD"),
)

TRIGRAMS: Final = {
    f"kantan_agents_trigrams_of_{name}": f"ON spans USING gin ({expression} gin_trgm_ops)"
    for name, expression in {
        "input": "lower(input)",
        "output": "lower(output)",
        "folded_input": "folded_input",
        "folded_output": "folded_output",
    }.items()
}

_log = get_logger("kantan_agents.tracing")


# Schemas that the user has no right to use.
_CLOSED_SCHEMAS: Final = """SELECT current_user, current_schema(), ARRAY(
SELECT n.nspname::text FROM pg_catalog.pg_namespace n
WHERE NOT has_schema_privilege(n.oid, 'USAGE') AND n.nspname = ANY(string_to_array(
replace(replace(replace(current_setting('search_path'), '"$user"', current_user), '"', ''), ', ', ','), ','))
AND (current_schema() IS NULL OR EXISTS (SELECT 1 FROM pg_catalog.pg_class c
WHERE c.relnamespace = n.oid AND c.relname = 'kantan_agents_schema')))"""


class _Warned:
    has_no_trigrams = False


def version_of(connection: ServerConnection) -> int | None:
    """Return the version of the tables; None if missing."""
    query = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
    if not connection.execute(query, (VERSIONS,)).fetchone()[0]:
        return None
    row = connection.execute(f"SELECT MAX(version) FROM {VERSIONS}").fetchone()  # noqa: S608
    return None if row is None else row[0]


def migrate(connection: ServerConnection, *, adopt: bool, search_index: bool = True) -> None:
    """Create or migrate the tables, outside a transaction; processes may do so in parallel.

    ``adopt`` allows tables of another program in the schema. ``search_index`` is for new tables.
    """
    found = version_of(connection)
    if found == VERSION:
        return
    is_new = False
    connection.native(BEGIN_WRITING)
    try:
        connection.native(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
        found = version_of(connection)  # another process may have been first
        if found is not None and found > VERSION:
            reason = f"its tables have version {found}, and this library knows {VERSION}; upgrade it"
            raise ServerError(reason)  # noqa: TRY301
        if found is None:
            is_new = True
            _check_rights(connection)
            _check_owner(connection, adopt=adopt)
            for statement in STATEMENTS:
                connection.native(statement)
            for statement in (*RECORDS.values(), *_FIGURES):
                connection.execute(statement)
            for statement in _NOTES:
                connection.native(statement)
            connection.native(f"CREATE TABLE {VERSIONS}(version bigint NOT NULL)")
            connection.native(f"INSERT INTO {VERSIONS} VALUES ({VERSION})")  # noqa: S608
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    if is_new and search_index:
        _index_if_possible(connection)


def _check_rights(connection: ServerConnection) -> None:
    """Raise ServerError if the tables may be in a schema that the user cannot see."""
    row = connection.native(_CLOSED_SCHEMAS).fetchone()
    user, schema, closed = row or (None, "", [])
    if closed:
        reason = f"the user {user} may not use the schema {closed[0]}; its owner can let them: GRANT USAGE ON"
        raise ServerError(f'{reason} SCHEMA "{closed[0]}" TO "{user}"', "42501")
    if schema is None:
        raise ServerError("no schema of its search_path exists; name one: ?options=-csearch_path%3Dschema")


def _check_owner(connection: ServerConnection, *, adopt: bool) -> None:
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
    found = [name for (name,) in connection.execute(query) if not name.startswith(_DURABLE)]
    taken = [name for name in found if name in COLUMNS or name.startswith("kantan_agents_")]
    if taken:
        reason = (
            f"it has a table {taken[0]} that is not a table of traces; "
            "name another schema, such as ?options=-csearch_path%3Dtraces"
        )
        raise ForeignDatabaseError(reason, can_adopt=False)
    if found and not adopt:
        listed = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")  # noqa: PLR2004
        reason = f"it is the database of another program, with {listed}"
        raise ForeignDatabaseError(f"{reason}; adopt=True adds the tables for traces to it", can_adopt=True)


def has_trigrams(connection: ServerConnection) -> bool:
    """Return whether the search index exists."""
    marks = ",".join("?" * len(TRIGRAMS))
    query = f"SELECT COUNT(*) FROM sqlite_master WHERE name IN ({marks})"  # noqa: S608
    return bool(connection.execute(query, [*TRIGRAMS]).fetchone()[0] == len(TRIGRAMS))


def create_trigrams(connection: ServerConnection) -> None:
    """Create the search index, which takes long for a large database and blocks writers."""
    connection.native("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    for name, definition in TRIGRAMS.items():
        connection.native(f"CREATE INDEX IF NOT EXISTS {name} {definition}")


def drop_trigrams(connection: ServerConnection) -> None:
    """Remove the search index."""
    for name in TRIGRAMS:
        connection.native(f"DROP INDEX IF EXISTS {name}")


def _index_if_possible(connection: ServerConnection) -> None:
    try:
        create_trigrams(connection)
    except ServerError as error:
        if not _Warned.has_no_trigrams:
            _Warned.has_no_trigrams = True
            _log.warning(
                "searches in Postgres read all texts, because there is no trigram index",
                path=str(connection.url),
                reason=str(error),
            )


def check_readable(connection: ServerConnection) -> None:
    """Raise sqlite3.OperationalError unless this library can read the tables."""
    found = version_of(connection)
    if found is None:
        _check_rights(connection)
        raise sqlite3.OperationalError('it is not a trace database: no table "traces"')
    if found > VERSION:
        raise sqlite3.OperationalError(
            f"its tables have version {found}, and this library knows {VERSION}; upgrade it"
        )
