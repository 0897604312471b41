"""Opening files: which can be read, and the errors for those that cannot."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import TraceStore
from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces import trace_file
from kantan_agents.traces.store import connection
from tests.traces.store.sample_database import open_sample
from tests.unprivileged import as_nobody, open_directory


def make(path: Path, *, log: bool = False) -> Path:
    with open_sample(path) as database:
        if log:
            database.tracer._conn.execute("PRAGMA journal_mode = WAL")
        database.run("hello", prompt_name="p")
    return path


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def reason_of(path: Path | str) -> str:
    with pytest.raises(TraceDatabaseError) as caught:
        TraceStore(path)
    assert caught.value.code == "E60" and caught.value.path == str(path)
    return str(caught.value.reason)


def test_a_missing_file_is_an_error_and_stays_missing(tmp_path: Path) -> None:
    assert reason_of(tmp_path / "none.db") == "there is no such file"
    assert reason_of(tmp_path / "no" / "such" / "directory.db") == "there is no such file"
    assert files(tmp_path) == []


@pytest.mark.parametrize("name", [":memory:", "", "a\0b"])
def test_names_with_a_special_meaning_in_sqlite_are_treated_as_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TraceDatabaseError):
        TraceStore(name)
    assert files(tmp_path) == []


def test_a_link_is_followed_and_a_broken_one_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(make(tmp_path / "t.db"))
    assert len(TraceStore(tmp_path / "link.db").traces()) == 1
    (tmp_path / "broken.db").symlink_to(tmp_path / "none.db")
    assert reason_of(tmp_path / "broken.db") == "there is no such file"
    (tmp_path / "circle.db").symlink_to(tmp_path / "circle.db")
    assert reason_of(tmp_path / "circle.db")


def test_a_directory_is_an_error(tmp_path: Path) -> None:
    assert reason_of(tmp_path) == "it is a directory"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_named_pipe_is_an_error_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert reason_of(tmp_path / "pipe") == "it is not a regular file"


def test_a_text_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("This is a text. " * 100)
    assert reason_of(tmp_path / "notes.txt") == "file is not a database"


def test_an_empty_file_is_an_error_and_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    assert reason_of(tmp_path / "empty.db") == 'it is not a trace database: no table "traces"'
    assert (tmp_path / "empty.db").stat().st_size == 0


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ("CREATE TABLE users(id TEXT)", 'no table "traces"'),
        ("CREATE TABLE traces(id TEXT)", 'table "traces" lacks workflow_name, group_id'),
        ("CREATE TABLE traces(id TEXT, workflow_name TEXT, group_id TEXT)", 'no table "spans"'),
    ],
)
def test_a_database_with_other_tables_is_an_error(tmp_path: Path, tables: str, problem: str) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute(tables)
    assert reason_of(path) == f"it is not a trace database: {problem}"


def test_a_database_of_an_older_kantan_llm_is_read_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as old, old:
        old.execute("CREATE TABLE traces(id TEXT PRIMARY KEY, workflow_name TEXT, group_id TEXT)")
        old.execute(
            "CREATE TABLE spans(id TEXT PRIMARY KEY, trace_id TEXT, parent_id TEXT, started_at TEXT, "
            "ended_at TEXT, span_type TEXT, input TEXT, output TEXT, error_json TEXT, raw_json TEXT)"
        )
        old.execute("INSERT INTO traces VALUES('trace_1', 'w', NULL)")
        old.execute(
            "INSERT INTO spans VALUES('s', 'trace_1', NULL, '2025-01-01T00:00:00+00:00', NULL, 'generation', "
            "'question', 'answer', NULL, '{}')"
        )
    before = path.read_bytes()
    store = TraceStore(path)
    (found,) = store.traces(keywords=["question"])
    assert (found.trace_id, found.output, found.metadata) == ("trace_1", "answer", {})
    assert store.traces(metadata={"a": 1}) == [] == store.traces(tool="x")
    assert store.prompts() == [] == store.failed()
    assert len(store.trace("LAST").spans) == 1
    assert path.read_bytes() == before
    assert store.prune(keep=0).traces == 1


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "name", ["a%41b.db", "what?.db", "50 % off #1.db", "東京 'x'.db", "file:x.db", "a&b=c;d.db"]
)
def test_special_characters_in_a_path_have_no_meaning(tmp_path: Path, name: str, log: bool) -> None:
    store = TraceStore(make(tmp_path / name, log=log))
    assert [trace.input for trace in store.traces()] == ["hello"]
    assert store.prune(keep=0).traces == 1
    assert files(tmp_path) == [name]


def test_a_relative_path_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "here.db")
    assert len(TraceStore("here.db").traces()) == 1


@pytest.mark.parametrize("log", [False, True])
def test_reading_changes_no_byte_and_leaves_no_file_behind(tmp_path: Path, log: bool) -> None:
    path = make(tmp_path / "t.db", log=log)
    before = path.read_bytes()
    read_everything(TraceStore(path))
    assert files(tmp_path) == ["t.db"]
    assert path.read_bytes() == before


def test_the_log_of_a_killed_writer_is_read_and_moved_to_the_file(tmp_path: Path) -> None:
    make(tmp_path / "t.db", log=True)
    with open_sample(tmp_path / "t.db") as database:
        database.run("only in the log")
        killed = tmp_path / "killed"
        killed.mkdir()
        for name in ("t.db", "t.db-wal"):
            shutil.copy(tmp_path / name, killed / name)
    store = TraceStore(killed / "t.db")
    assert [trace.input for trace in store.traces()] == ["only in the log", "hello"]
    assert files(killed) == ["t.db"]


def read_everything(store: TraceStore) -> None:
    assert len(store.traces(keywords=["hello"], metadata={"prompt_name": "p"})) == 1
    assert store.trace("LAST").summary.output == "a"
    assert len(store.prompts()) == 1
    assert len(list(store.export())) == 1
    assert store.failed() == []
    assert store.prune(keep=0, dry_run=True).traces == 1
    with closing(store.follow()) as following:
        assert following is not None


@pytest.fixture
def shared() -> Iterator[Path]:
    with open_directory() as directory:
        yield directory


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="no users here")
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("mode", [0o777, 0o555])
def test_a_read_only_file_can_be_read_in_any_directory(shared: Path, mode: int, log: bool) -> None:
    path = make(shared / "t.db", log=log)
    path.chmod(0o444)
    shared.chmod(mode)
    before = path.read_bytes()
    with as_nobody():
        store = TraceStore(path)
        read_everything(store)
        with pytest.raises(TraceDatabaseError, match="readonly"):
            store.prune(keep=0)
    assert path.read_bytes() == before
    if not log or mode == 0o555:
        # Otherwise SQLite creates a log that it may not delete.
        assert files(shared) == ["t.db"]


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="no users here")
def test_a_file_without_read_permission_is_an_error(shared: Path) -> None:
    path = make(shared / "t.db")
    path.chmod(0o000)
    with as_nobody():
        assert "unable to open" in reason_of(path)
    shared.chmod(0o000)
    with as_nobody():
        assert reason_of(path) == "Permission denied"


CALLS: list[Callable[[TraceStore], Any]] = [
    lambda store: store.traces(),
    lambda store: store.traces(keywords=["x"]),
    lambda store: store.trace("LAST"),
    lambda store: store.prompts(),
    lambda store: store.failed(),
    lambda store: store.judged("LAST"),
    lambda store: list(store.export()),
    lambda store: store.follow(),
    lambda store: store.prune(keep=1),
    lambda store: store.prune(keep=1, dry_run=True),
    lambda store: store.get_trace("x"),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_file_deleted_meanwhile_is_an_error_and_not_created_again(tmp_path: Path, call: Any) -> None:
    store = TraceStore(make(tmp_path / "t.db"))
    (tmp_path / "t.db").unlink()
    with pytest.raises(TraceDatabaseError, match="there is no such file"):
        call(store)
    assert files(tmp_path) == []


@pytest.mark.parametrize("call", CALLS)
def test_a_damaged_file_is_an_error(tmp_path: Path, call: Any) -> None:
    path = make(tmp_path / "t.db")
    store = TraceStore(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(TraceDatabaseError) as caught:
        call(store)
    assert "malformed" in caught.value.reason


@pytest.mark.parametrize("call", CALLS)
def test_a_file_locked_for_too_long_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any
) -> None:
    monkeypatch.setattr(trace_file, "READ_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(connection, "_CHANGE_WAIT_SECONDS", 0.01)
    path = make(tmp_path / "t.db")
    store = TraceStore(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TraceDatabaseError, match="locked"):
            call(store)
    call(store)


def test_the_repr_of_a_store_shows_its_path(tmp_path: Path) -> None:
    path = make(tmp_path / "t.db")
    assert repr(TraceStore(path)) == f"TraceStore({str(path)!r})"
    assert TraceStore(str(path)).path == path
