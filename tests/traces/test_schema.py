"""Creating kantan-llm's tables, also while another process creates them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kantan_llm.tracing import SQLiteTracer

from kantan_agents import SQLiteRecorder
from kantan_agents.traces.schema import ForeignDatabaseError, check_owner, has_tables, make_tables


def another_process_is_first(patch: pytest.MonkeyPatch, times: int) -> list[str]:
    """Make the first ``times`` attempts fail as if another process had just added the column."""
    original = SQLiteTracer.get_trace
    tries: list[str] = []

    def get_trace(self: Any, trace_id: str) -> Any:
        tries.append(trace_id)
        if len(tries) <= times:
            raise sqlite3.OperationalError("duplicate column name: usage_json")
        return original(self, trace_id)

    patch.setattr(SQLiteTracer, "get_trace", get_trace)
    return tries


def test_tables_are_complete_if_another_process_creates_them_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "traces.sqlite3"
    tries = another_process_is_first(monkeypatch, times=3)
    make_tables(path)
    assert len(tries) == 4
    with closing(sqlite3.connect(path)) as connection:
        assert has_tables(connection)


def test_the_number_of_attempts_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = another_process_is_first(monkeypatch, times=1_000)
    with pytest.raises(sqlite3.OperationalError, match="duplicate column"):
        make_tables(tmp_path / "traces.sqlite3")
    assert len(tries) < 100


def test_opening_an_unusable_file_without_spans_logs_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    another_process_is_first(monkeypatch, times=1_000)
    recorder = SQLiteRecorder(tmp_path / "traces.sqlite3", flush_interval=0.001)
    try:
        assert not recorder.force_flush(5)
    finally:
        monkeypatch.undo()
        recorder.shutdown()
    assert "duplicate column name: usage_json" in caplog.text
    assert "IndexError" not in caplog.text


def test_tables_that_another_process_creates_meanwhile_are_not_taken_for_those_of_another_program(
    tmp_path: Path,
) -> None:
    path = tmp_path / "traces.sqlite3"
    with closing(sqlite3.connect(path)) as connection, closing(sqlite3.connect(path)) as other:

        def create(statement: str) -> None:
            if "sqlite_master" in statement:
                other.execute("CREATE TABLE IF NOT EXISTS traces(id TEXT PRIMARY KEY, workflow_name TEXT)")

        connection.set_trace_callback(create)
        check_owner(connection)
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall()[0] == ("traces",)


def test_a_table_of_another_program_is_still_recognised(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.sqlite3")) as connection:
        connection.execute("CREATE TABLE songs(name TEXT)")
        with pytest.raises(ForeignDatabaseError, match="songs"):
            check_owner(connection)
