"""The tables are kantan-llm's, and whoever comes first makes them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kantan_llm.tracing import SQLiteTracer

from kantan_agents.tracing.recorder import SQLiteRecorder
from kantan_agents.tracing.schema import has_tables, make_tables


def another_is_first(patch: pytest.MonkeyPatch, times: int) -> list[str]:
    """Have the first tries find that somebody has added a column since they looked."""
    made = SQLiteTracer.get_trace
    tries: list[str] = []

    def get_trace(self: Any, trace_id: str) -> Any:
        tries.append(trace_id)
        if len(tries) <= times:
            raise sqlite3.OperationalError("duplicate column name: usage_json")
        return made(self, trace_id)

    patch.setattr(SQLiteTracer, "get_trace", get_trace)
    return tries


def test_tables_that_another_makes_at_the_same_time_are_there_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "traces.sqlite3"
    tries = another_is_first(monkeypatch, times=3)
    make_tables(path)
    assert len(tries) == 4
    with closing(sqlite3.connect(path)) as connection:
        assert has_tables(connection)


def test_it_is_not_tried_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = another_is_first(monkeypatch, times=1_000)
    with pytest.raises(sqlite3.OperationalError, match="duplicate column"):
        make_tables(tmp_path / "traces.sqlite3")
    assert len(tries) < 100


def test_nothing_to_write_is_not_to_blame_for_a_file_that_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    another_is_first(monkeypatch, times=1_000)
    recorder = SQLiteRecorder(tmp_path / "traces.sqlite3", flush_interval=0.001)
    try:
        assert not recorder.force_flush(5)
    finally:
        monkeypatch.undo()
        recorder.shutdown()
    assert "duplicate column name: usage_json" in caplog.text
    assert "IndexError" not in caplog.text
