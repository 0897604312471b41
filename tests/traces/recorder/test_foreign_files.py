"""A database of another program is not changed, unless its owner asks for it."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from agents import custom_span, trace
from hypothesis import given
from hypothesis import strategies as st
from kantan_llm.tracing import SQLiteTracer

from kantan_agents import SQLiteRecorder, TraceStore, record_traces
from kantan_agents.errors import FileArgumentError, InvalidOptionError, TraceDatabaseError
from tests.traces.recorder.database_file import DatabaseFile
from tests.traces.recorder.processes import wait_until

RecorderAt = Callable[..., SQLiteRecorder]


def make(path: Path, *statements: str, mode: str = "delete") -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        for statement in statements:
            connection.execute(statement)


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if not path.name.endswith("-shm")}


def record() -> None:
    with trace("w"), custom_span("a"):
        pass


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (["CREATE TABLE users (name TEXT)"], "it is the database of another program, with users; adopt=True"),
        (["CREATE VIEW v AS SELECT 1"], "it is the database of another program, with v; adopt=True"),
        (
            [f"CREATE TABLE {name} (x)" for name in ("d", "c", "b", "a")],
            "it is the database of another program, with a, b, c, ...; adopt=True",
        ),
        (["CREATE TABLE traces (ant)"], "it is not a trace database: its table traces lacks group_id"),
        (["CREATE TABLE spans (bridge)"], "it is not a trace database: its table spans lacks ended_at"),
    ],
)
def test_recording_in_the_database_of_another_program_is_refused_and_changes_nothing(
    tmp_path: Path, statements: list[str], reason: str, mode: str
) -> None:
    path = tmp_path / "app.db"
    make(path, *statements, mode=mode)
    before = content(tmp_path)
    for recorder in (SQLiteRecorder, record_traces):
        with pytest.raises(TraceDatabaseError) as caught:
            recorder(path)
        assert caught.value.reason.startswith(reason)
        assert content(tmp_path) == before


def test_the_log_of_another_program_stays_where_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE users (name TEXT)")
        connection.commit()
        killed = tmp_path / "killed"
        killed.mkdir()
        for name in ("app.db", "app.db-wal"):
            shutil.copy(tmp_path / name, killed / name)
    before = content(killed)
    for use in (SQLiteRecorder, TraceStore):
        with pytest.raises(TraceDatabaseError):
            use(killed / "app.db")
        assert content(killed) == before


def test_adopt_adds_the_tables_and_keeps_those_of_the_program(
    recorder_at: RecorderAt, file: DatabaseFile
) -> None:
    make(file.path, "CREATE TABLE users (name TEXT)", "INSERT INTO users VALUES ('aiko')")
    recorder = recorder_at(file.path, adopt=True)
    record()
    assert recorder.force_flush()
    recorder.shutdown()
    assert file.rows("SELECT name FROM users") == [("aiko",)]
    # From now on it is a trace database too.
    again = recorder_at(file.path)
    record()
    assert again.force_flush()
    assert len(TraceStore(file.path).traces()) == 2


def test_adopt_does_not_change_tables_with_the_same_names(
    recorder_at: RecorderAt, file: DatabaseFile, caplog: pytest.LogCaptureFixture
) -> None:
    make(file.path, "CREATE TABLE traces (ant)", "CREATE TABLE spans (bridge)")
    before = file.bytes()
    with caplog.at_level(logging.CRITICAL, "kantan_agents"):
        recorder = recorder_at(file.path, adopt=True)
        record()
        assert not recorder.force_flush()
        recorder.shutdown(0.1)
        assert file.bytes() == before
        file.path.unlink()
        wait_until(recorder.force_flush)


def empty(path: Path) -> None:
    path.touch()


def of_kantan_llm(path: Path) -> None:
    tracer = SQLiteTracer(str(path))
    tracer.get_trace("")
    tracer.shutdown()


def half_made(path: Path) -> None:
    make(path, "CREATE TABLE traces (id TEXT PRIMARY KEY, workflow_name TEXT, group_id TEXT)")


def with_our_tables_only(path: Path) -> None:
    make(path, "CREATE TABLE kantan_agents_scores (id TEXT)")


def without_tables(path: Path) -> None:
    make(path, "CREATE TABLE gone (x)", "DROP TABLE gone")


@pytest.mark.parametrize(
    "prepare", [lambda _path: None, empty, of_kantan_llm, half_made, with_our_tables_only, without_tables]
)
def test_a_new_an_empty_and_a_trace_database_are_used_without_asking(
    recorder_at: RecorderAt, file: DatabaseFile, prepare: Callable[[Path], None]
) -> None:
    prepare(file.path)
    recorder = recorder_at(file.path)
    record()
    assert recorder.force_flush()
    assert file.names() == ["a"]


def test_a_file_that_is_replaced_by_another_programs_database_is_not_changed(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Callable[..., list[str]]
) -> None:
    recorder = recorder_at(file.path)
    record()
    assert recorder.force_flush()
    for path in file.path.parent.glob("*"):
        path.unlink()
    make(file.path, "CREATE TABLE users (name TEXT)")
    before = file.bytes()
    record()
    assert not recorder.force_flush()
    recorder.shutdown(0.1)
    assert file.bytes() == before
    assert "it is the database of another program, with users" in logged("E62")[0]
    file.path.unlink()
    wait_until(recorder.force_flush)
    assert file.names() == ["a"]


@pytest.mark.parametrize("adopt", ["yes", 1, None])
def test_adopt_must_be_true_or_false(tmp_path: Path, adopt: Any) -> None:
    with pytest.raises(InvalidOptionError, match="adopt: must be True or False"):
        SQLiteRecorder(tmp_path / "t.db", adopt=adopt)


def test_the_command_line_does_not_change_the_database_of_another_program(tmp_path: Path) -> None:
    from kantan_agents.cli.run.recording import check_database, recording

    path = tmp_path / "app.db"
    make(path, "CREATE TABLE users (name TEXT)")
    before = content(tmp_path)
    with pytest.raises(FileArgumentError, match="it is the database of another program, with users"):
        check_database(path)
    with pytest.raises(FileArgumentError, match="another program"), recording(path):
        pass
    assert content(tmp_path) == before


NAMES = st.text(st.sampled_from("abcXYZ_%-é\"' "), min_size=1, max_size=8).filter(
    lambda name: not name.lower().startswith(("sqlite_", "kantan_agents_"))
)
KINDS = st.sampled_from(["TABLE {} (x)", "VIEW {} AS SELECT 1 AS x"])


@given(
    objects=st.dictionaries(NAMES, KINDS, min_size=1, max_size=3),
    mode=st.sampled_from(["delete", "wal", "truncate"]),
)
def test_nothing_of_this_library_changes_a_database_that_is_not_its_own(
    objects: dict[str, str], mode: str
) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory).resolve() / "app.db"
        quoted = [kind.format('"' + name.replace('"', '""') + '"') for name, kind in objects.items()]
        with suppress(sqlite3.OperationalError):  # two names that differ only in case
            make(path, *(f"CREATE {statement}" for statement in quoted), mode=mode)
        before, names = content(Path(directory)), sorted(Path(directory).iterdir())
        for use in (SQLiteRecorder, TraceStore):
            with pytest.raises(TraceDatabaseError):
                use(path)
        assert content(Path(directory)) == before
        assert sorted(Path(directory).iterdir()) == names
