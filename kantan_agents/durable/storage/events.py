"""Stored events of durable runs, for readers that resume."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.durable.storage.database import RunDatabase

_LIMIT = 1000
_RENAMED = {"tool_call_refused": "tool_call_denied", "mcp_server_left_out": "mcp_server_omitted"}
"""Types of events that earlier versions stored under another name."""


@attrs.frozen
class StoredEvent:
    """A stored event of a durable run, with its number.

    Attributes:
        sequence: Its number in the run, from 1.
        data: The event as data, with its ``type``.
    """

    sequence: int
    data: Mapping[str, Any]


class Events:
    """The events of one database."""

    def __init__(self, database: RunDatabase) -> None:
        self._database = database

    def after(self, run_id: str, sequence: int) -> list[StoredEvent]:
        """Return the next events after a number."""
        from sqlalchemy import text

        with self._database.read() as connection:
            rows = connection.execute(
                text(
                    "SELECT sequence, body FROM kantan_agents_durable_events "
                    f"WHERE run_id = :run AND sequence > :after ORDER BY sequence LIMIT {_LIMIT}"
                ),
                {"run": run_id, "after": sequence},
            ).all()
        return [StoredEvent(number, _current(json.loads(body))) for number, body in rows]

    def last_after(self, sequences: Mapping[str, int]) -> dict[str, int]:
        """Return the last number of each run with new events."""
        from sqlalchemy import text

        given = "json_each(:runs)" if self._database.is_sqlite else "json_each_text(CAST(:runs AS json))"
        statement = text(
            "SELECT r.key, (SELECT MAX(sequence) FROM kantan_agents_durable_events e WHERE e.run_id = r.key) "
            f"FROM {given} r WHERE EXISTS (SELECT 1 FROM kantan_agents_durable_events e "
            "WHERE e.run_id = r.key AND e.sequence > CAST(r.value AS INTEGER))"
        )
        with self._database.read() as connection:
            rows = connection.execute(statement, {"runs": json.dumps(dict(sequences))}).all()
        return {str(run_id): int(last) for run_id, last in rows}

    def known(self, run_id: str) -> tuple[int, frozenset[str]]:
        """Return a run's last number and its events' identities."""
        from sqlalchemy import text

        with self._database.read() as connection:
            rows = connection.execute(
                text("SELECT sequence, identity FROM kantan_agents_durable_events WHERE run_id = :run"),
                {"run": run_id},
            ).all()
        return max((number for number, _ in rows), default=0), frozenset(
            _current_identity(identity) for _, identity in rows if identity is not None
        )

    def add(self, run_id: str, events: Sequence[tuple[int, str | None, str]]) -> None:
        """Store events as number, identity and body, except existing numbers."""
        from sqlalchemy import text

        if not events:
            return
        with self._database.write() as connection:
            connection.execute(
                text(
                    "INSERT INTO kantan_agents_durable_events (run_id, sequence, identity, body) "
                    "VALUES (:run, :sequence, :identity, :body) ON CONFLICT (run_id, sequence) DO NOTHING"
                ),
                [
                    {"run": run_id, "sequence": number, "identity": identity, "body": body}
                    for number, identity, body in events
                ],
            )


def _current(data: dict[str, Any]) -> dict[str, Any]:
    kind = data["type"]
    if kind == "history_compacted" and "is_summarised" in data:
        return {("is_summarized" if key == "is_summarised" else key): value for key, value in data.items()}
    return {**data, "type": _RENAMED[kind]} if kind in _RENAMED else data


def _current_identity(identity: str) -> str:
    kind, slash, rest = identity.partition("/")
    return f"{_RENAMED.get(kind, kind)}{slash}{rest}"
