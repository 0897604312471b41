"""A program that never stops its ``DurableRuns``."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import time
import weakref
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

from kantan_agents import DurableRuns


def _files(connection: sqlite3.Connection) -> list[Any]:
    return connection.execute("PRAGMA database_list").fetchall()


def test_connections_are_closed_when_nobody_has_stopped_it(tmp_path: Path) -> None:
    opened: list[object] = []
    closed: list[object] = []

    # Engines of other tests may open and close theirs meanwhile.
    def note_opened(connection: Any, _record: object) -> None:
        if isinstance(connection, sqlite3.Connection) and str(tmp_path) in str(_files(connection)):
            opened.append(id(connection))

    def note_closed(connection: object, _record: object) -> None:
        if id(connection) in opened:
            closed.append(id(connection))

    event.listen(Engine, "connect", note_opened)
    event.listen(Engine, "close", note_closed)
    try:
        runs = DurableRuns(f"sqlite:///{tmp_path / 'runs.db'}")
        assert asyncio.run(runs.list_runs()) == []
        assert len(opened) > len(closed)
        del runs
        end = time.monotonic() + 30
        while len(opened) != len(closed):  # the thread that has listed the runs may hold them for a moment
            assert time.monotonic() < end
            gc.collect()
            time.sleep(0.01)
    finally:
        event.remove(Engine, "connect", note_opened)
        event.remove(Engine, "close", note_closed)


def test_what_was_stopped_keeps_none_of_its_connections(tmp_path: Path) -> None:
    engines: weakref.WeakSet[Engine] = weakref.WeakSet()
    used: list[int] = []

    def note(connection: Connection) -> None:
        used.append(id(connection.engine))
        engines.add(connection.engine)

    async def start_and_stop() -> None:
        for _ in range(3):
            async with runs:
                assert await runs.list_runs() == []

    runs = DurableRuns(f"sqlite:///{tmp_path / 'runs.db'}")
    event.listen(Engine, "engine_connect", note)
    try:
        asyncio.run(start_and_stop())
    finally:
        event.remove(Engine, "engine_connect", note)
    gc.collect()
    assert used
    assert [*engines] == []
