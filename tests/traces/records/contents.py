"""Reads the tables of the records with plain SQL."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from kantan_agents.traces.record_tables import CONTENTS, RUNS


def rows(path: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query, values).fetchall()


def change(path: Path, *statements: str) -> None:
    """Execute statements as another program would, without anything of this library."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def kinds(path: Path) -> Counter[str]:
    """Return how many contents of each kind there are."""
    return Counter(dict(rows(path, f"SELECT kind, COUNT(*) FROM {CONTENTS} GROUP BY kind")))


def counted(path: Path) -> dict[int, int]:
    """Return how often each content is used, as the file counts it."""
    return dict(rows(path, f"SELECT id, uses FROM {CONTENTS}"))


def referred(path: Path) -> dict[int, int]:
    """Return how often each content is used, from the references themselves."""
    found = Counter({content: 0 for (content,) in rows(path, f"SELECT id FROM {CONTENTS}")})
    lists = rows(path, f"SELECT contents FROM {RUNS}")
    lists += rows(path, f"SELECT parts FROM {CONTENTS} WHERE parts IS NOT NULL")
    for (ids,) in lists:
        found.update(set(json.loads(ids)))
    return dict(found)
