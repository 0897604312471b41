"""Counts how often held-out cases were opened, and limits the total error rate.

However often the same cases are opened, the error rate stays below 5 %: the first opening uses half of it,
the second a quarter, and so on.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

import attrs

from kantan_agents.lab.experiment.database import intact
from kantan_agents.traces.schema import count_existing
from kantan_agents.traces.store.connection import changing, reading, transaction

OPENINGS: Final = "kantan_agents_sealed_openings"
"""One row for each opening. It outlives the traces: the cases stay seen."""
ALPHA: Final = 0.05
"""The error rate of all openings of the same cases together."""

_CREATE: Final = (
    f"CREATE TABLE IF NOT EXISTS {OPENINGS}(id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, "
    "prompt TEXT NOT NULL, opened_at TEXT NOT NULL, cases TEXT NOT NULL)"
)


@attrs.frozen
class Opening:
    """One opening of held-out cases.

    Attributes:
        number: How often any of these cases were opened so far, including this time.
        alpha: The error rate that this opening may use.
    """

    number: int
    alpha: float

    @classmethod
    def of(cls, number: int) -> Opening:
        """Return the opening of this number, from 1."""
        return cls(number, ALPHA / 2**number)

    @property
    def left(self) -> float:
        """The error rate that remains for all later openings of these cases."""
        return self.alpha


def next_opening(path: Path, cases: Collection[str]) -> Opening:
    """Return the next opening of these cases, without opening them."""
    with reading(path, by_trace=False) as connection:
        rows = list(connection.execute(_SELECT)) if count_existing(connection, [OPENINGS]) else []
    return Opening.of(_count(path, rows, cases) + 1)


def open_held_out(path: Path, key: str, prompt: str, cases: Collection[str]) -> Opening:
    """Store an opening; the same one again, by ``key``, is the same row."""
    values = (key, prompt, datetime.now(timezone.utc).isoformat(), json.dumps(sorted(cases)))
    with changing(path) as connection, transaction(connection):
        connection.execute(_CREATE)
        connection.execute(
            f"INSERT OR IGNORE INTO {OPENINGS}(key, prompt, opened_at, cases) VALUES (?, ?, ?, ?)",  # noqa: S608
            values,
        )
        own = connection.execute(f"SELECT id FROM {OPENINGS} WHERE key = ?", (key,)).fetchone()[0]  # noqa: S608
        earlier = [row for row in connection.execute(_SELECT) if row[0] < own]
    return Opening.of(_count(path, earlier, cases) + 1)


_SELECT: Final = f"SELECT id, cases FROM {OPENINGS} ORDER BY id"  # noqa: S608


def _count(path: Path, rows: Collection[sqlite3.Row], cases: Collection[str]) -> int:
    wanted = set(cases)
    with intact(path, f"a row of {OPENINGS}"):
        return sum(bool(wanted & set(json.loads(row[1]))) for row in rows)
