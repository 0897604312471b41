"""A program that never stops its ``DurableRuns``."""

from __future__ import annotations

import asyncio
import gc
import time
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.engine import Engine

from kantan_agents.durable import DurableRuns


def test_connections_are_closed_when_nobody_has_stopped_it(tmp_path: Path) -> None:
    opened: list[object] = []
    closed: list[object] = []

    def note_opened(connection: object, _record: object) -> None:
        opened.append(id(connection))

    def note_closed(connection: object, _record: object) -> None:
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
