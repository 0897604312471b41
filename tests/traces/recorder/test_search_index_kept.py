"""The recorder makes the search index of a new file, and fills it when it has time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from agents import generation_span, set_trace_processors, trace
from kantan_llm.tracing import SQLiteTracer

from kantan_agents import SQLiteRecorder, TraceStore
from kantan_agents.errors import InvalidOptionError
from kantan_agents.traces.recorder import batches, catch_up, writer
from kantan_agents.traces.search_index import count_unindexed, has_index
from tests.traces.recorder.database_file import DatabaseFile

RecorderAt = Callable[..., SQLiteRecorder]


def record(text: str) -> None:
    with trace("workflow"), generation_span(input=[{"role": "user", "content": text}], output=[]):
        pass


def unindexed(file: DatabaseFile) -> int | None:
    with closing(sqlite3.connect(file.path)) as connection:
        return count_unindexed(connection) if has_index(connection) else None


def wait_until_indexed(file: DatabaseFile, left: int = 0) -> None:
    deadline = time.monotonic() + 20
    while unindexed(file) != left and time.monotonic() < deadline:
        time.sleep(0.01)
    assert unindexed(file) == left


def found(file: DatabaseFile, word: str) -> int:
    return len(TraceStore(file.path).traces(keywords=[word], limit=None))


def test_a_new_file_has_an_index_that_is_filled(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "INDEXED_AT_ONCE", 2)
    recorder = recorder_at(file.path)
    for number in range(4):
        record(f"hurricane {number}")
    assert recorder.force_flush(10)
    assert found(file, "hurricane") == 4
    wait_until_indexed(file)
    assert found(file, "hurricane") == 4


def test_a_few_traces_are_not_indexed_and_found(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    recorder = recorder_at(file.path)
    record("hurricane")
    recorder.shutdown()
    assert unindexed(file) == 1
    assert found(file, "hurricane") == 1


def test_a_busy_writer_indexes_later(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "INDEXED_AT_ONCE", 2)
    monkeypatch.setattr(writer, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(batches, "_BUSY", 0)  # as if more spans waited after each batch
    recorder = recorder_at(file.path)
    for number in range(4):
        record(f"hurricane {number}")
    assert recorder.force_flush(10)
    wait_until_indexed(file)


def test_a_file_gets_no_index_if_it_shall_have_none(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    recorder = recorder_at(file.path, search_index=False)
    record("hurricane")
    recorder.shutdown()
    assert unindexed(file) is None
    assert found(file, "hurricane") == 1


def test_an_index_is_filled_whether_the_recorder_would_make_one_or_not(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "INDEXED_AT_ONCE", 1)
    recorder_at(file.path, search_index=False)
    record("hurricane")
    TraceStore(file.path).build_index()
    record("another hurricane")
    TraceStore(file.path).traces()
    wait_until_indexed(file)
    assert found(file, "hurricane") == 2


def test_the_option_must_be_a_bool(file: DatabaseFile) -> None:
    options: dict[str, Any] = {"search_index": "no"}
    with pytest.raises(InvalidOptionError, match="search_index"):
        SQLiteRecorder(file.path, **options)


def test_what_kantan_llms_tracer_adds_is_found_and_indexed_by_the_next_recorder(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder_at(file.path).shutdown()
    tracer: Any = SQLiteTracer(str(file.path))
    set_trace_processors([tracer])
    record("hurricane")
    record("a second hurricane")
    tracer.shutdown()
    assert (found(file, "hurricane"), unindexed(file)) == (2, 2)
    monkeypatch.setattr(catch_up, "INDEXED_AT_ONCE", 1)
    recorder = recorder_at(file.path)
    record("a third hurricane")
    assert recorder.force_flush(10)
    wait_until_indexed(file)
    assert found(file, "hurricane") == 3


@pytest.mark.parametrize("dropped", ["TABLE kantan_agents_indexed", "TRIGGER kantan_agents_text_added"])
def test_the_recorder_makes_an_index_anew_of_which_something_is_missing(
    recorder_at: RecorderAt, file: DatabaseFile, dropped: str
) -> None:
    recorder = recorder_at(file.path)
    record("hurricane")
    recorder.shutdown()
    with closing(sqlite3.connect(file.path)) as connection:
        connection.execute(f"DROP {dropped}")
        connection.commit()
    again = recorder_at(file.path)
    record("another hurricane")
    assert again.force_flush(10)
    assert unindexed(file) == 2
    assert found(file, "hurricane") == 2


def test_a_damaged_index_does_not_stop_the_recorder(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch, logged: Any
) -> None:
    monkeypatch.setattr(catch_up, "INDEXED_AT_ONCE", 1)
    recorder = recorder_at(file.path)
    record("hurricane")
    assert recorder.force_flush(10)
    wait_until_indexed(file)
    with closing(sqlite3.connect(file.path)) as connection:
        connection.execute("UPDATE kantan_agents_index_part_1_data SET block = x'00ff00ff00ff'")
        connection.commit()
    for number in range(3):
        record(f"hurricane {number}")
        assert recorder.force_flush(10)
    recorder.shutdown()
    assert recorder.stats().written == 4
    assert found(file, "hurricane") == 4
    assert any("indexed later" in message for message in logged())
