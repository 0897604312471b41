"""Writes many spans: COPY into a temporary table, then one statement into ``spans``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kantan_agents.support.storable_text import storable_text
from kantan_agents.traces.metadata import finite
from kantan_agents.traces.schema import COLUMNS
from kantan_agents.traces.trigrams import fold, lower_ascii

if TYPE_CHECKING:
    import psycopg

_COLUMNS: Final = COLUMNS["spans"][:-1]  # without ingest_seq, which the server assigns
_JSON: Final = tuple(place for place, name in enumerate(_COLUMNS) if name.endswith("_json"))
_INPUT, _OUTPUT = _COLUMNS.index("input"), _COLUMNS.index("output")
_ALL: Final = (*_COLUMNS, "folded_input", "folded_output", "week")

# A zero character and half of a surrogate pair are valid JSON that Postgres cannot store.
_UNSTORABLE: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
# Python writes these, and they are not JSON.
_NOT_JSON: Final = re.compile(r"\b(?:NaN|Infinity)\b")

STAGING: Final = (
    "CREATE TEMP TABLE IF NOT EXISTS kantan_agents_staging("
    + ", ".join(f"{name} {'date' if name == 'week' else 'text'}" for name in _ALL)
    + ", place bigint) ON COMMIT DELETE ROWS"
)

_COPY: Final = f"COPY kantan_agents_staging({', '.join(_ALL)}, place) FROM STDIN"

_CHANGED: Final = (*(name for name in _ALL if name not in ("id", "week")), "ingest_seq", "rowid")
_MERGE: Final = (
    f"INSERT INTO spans({', '.join(_ALL)}, ingest_seq) "  # noqa: S608
    f"SELECT {', '.join(f'n.{name}' for name in _ALL)}, COALESCE(last.seq, 0) + n.number FROM ("
    "SELECT s.*, row_number() OVER (PARTITION BY s.trace_id ORDER BY s.place) AS number "
    "FROM kantan_agents_staging s) n "
    # Otherwise the planner would read whole partitions.
    "LEFT JOIN (SELECT t.trace_id, "
    "(SELECT MAX(o.ingest_seq) FROM spans o WHERE o.trace_id = t.trace_id) AS seq "
    "FROM (SELECT DISTINCT trace_id FROM kantan_agents_staging) t) last ON last.trace_id = n.trace_id "
    "ORDER BY n.place "
    "ON CONFLICT (id, week) DO UPDATE SET " + ", ".join(f"{name} = EXCLUDED.{name}" for name in _CHANGED)
)


class StagedRow(Protocol):
    """A span in the recorder's form."""

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the columns, without ``ingest_seq``."""


class SpanValues(NamedTuple):
    """A span from another database."""

    values: tuple[Any, ...]


def copy_spans(raw: psycopg.Connection[Any], spans: Iterable[tuple[StagedRow, date]]) -> None:
    """Send spans with their weeks, inside a transaction that blocks no one."""
    with raw.cursor() as cursor, cursor.copy(_COPY) as copy:
        for place, (span, week) in enumerate(spans):
            copy.write_row((*stored_values(span.values), week, place))


def merge_spans(raw: psycopg.Connection[Any]) -> None:
    """Move the sent spans into ``spans``, numbered in their order; replace known ids."""
    raw.execute(_MERGE)


def stored_trace(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Make the row of a trace storable in Postgres."""
    texts = [storable_text(value) if isinstance(value, str) else value for value in row]
    metadata = texts[-1]
    if isinstance(metadata, str) and is_unstorable(metadata):
        texts[-1] = storable_json(metadata)
    return (*texts,)


def stored_values(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Make the values of a span storable, and add its folded strings."""
    stored = [storable_text(value) if isinstance(value, str) else value for value in values]
    for place in _JSON:
        text = stored[place]
        if isinstance(text, str) and is_unstorable(text):
            stored[place] = storable_json(text)
    return (*stored, folded(stored[_INPUT]), folded(stored[_OUTPUT]))


def is_unstorable(text: str) -> bool:
    """Return whether Postgres may reject this JSON."""
    if "\\u" in text and _UNSTORABLE.search(text):
        return True
    return ("NaN" in text or "Infinity" in text) and bool(_NOT_JSON.search(text))


def storable_json(text: str) -> str:
    """Drop NaN, zero characters and halves of surrogate pairs."""
    try:
        data = json.loads(text)
    except ValueError:
        return text
    return json.dumps(_storable(finite(data)), ensure_ascii=False)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, list):
        return [_storable(one) for one in value]
    if isinstance(value, dict):
        return {storable_text(key): _storable(one) for key, one in value.items()}
    return value


def folded(text: str | None) -> str | None:
    """Return the folded string; None if the server's ``lower`` gives it.

    A server folds non-ASCII letters by its locale.
    """
    if text is None or text.isascii():
        return None
    result = fold(text)
    return None if result == lower_ascii(text) else result
