"""A database that is moved, replaced, truncated or deleted under the recorder, and read at any moment."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents import set_trace_processors
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from kantan_agents import SQLiteRecorder, TraceStore
from kantan_agents.traces.recorder import database
from kantan_agents.traces.recorder.batches import BatchWriter
from tests.sizes import size
from tests.traces.recorder.database_file import DatabaseFile
from tests.traces.recorder.processes import SECONDS, Start, wait_until
from tests.traces.recorder.spans import record_trace

RecorderAt = Callable[..., SQLiteRecorder]
Change = Callable[[Path], None]


def _beside(path: Path, *suffixes: str) -> None:
    for suffix in suffixes:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def move_another_over_it(path: Path) -> None:
    other = path.with_name("other.sqlite3")
    recorder = SQLiteRecorder(other, flush_on_sigterm=False)
    recorder.shutdown()
    other.replace(path)


def remove_log_and_index(path: Path) -> None:
    _beside(path, "-wal", "-shm")


def remove_log(path: Path) -> None:
    _beside(path, "-wal")


def remove_index(path: Path) -> None:
    _beside(path, "-shm")


def truncate(path: Path) -> None:
    if path.exists():
        os.truncate(path, 0)


def delete(path: Path) -> None:
    path.unlink(missing_ok=True)


def delete_all(path: Path) -> None:
    _beside(path, "", "-wal", "-shm")


def move_away(path: Path) -> None:
    if path.exists():
        path.rename(path.with_name(f"away {time.monotonic_ns()}"))


CHANGES = [
    move_another_over_it,
    remove_log_and_index,
    remove_log,
    remove_index,
    truncate,
    delete,
    delete_all,
    move_away,
]
# After these, the spans that were written before are still in the file.
KEEPING = {remove_log_and_index, remove_log, remove_index}


@pytest.mark.parametrize("change", CHANGES)
def test_after_any_change_of_the_files_a_read_sees_no_foreign_rows_and_new_spans_are_readable(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Any, change: Change
) -> None:
    recorder = recorder_at(file.path)
    record_trace("before")
    assert recorder.force_flush(SECONDS)
    change(file.path)
    store = TraceStore(file.path)
    read = [span.name for found in store.traces(limit=1_000) for span in store.trace(found.trace_id).spans]
    assert read == (["before"] if change in KEEPING else [])
    record_trace("after")
    assert recorder.force_flush(SECONDS)
    assert file.names() == [*read, "after"]
    assert file.is_sound()
    stats = recorder.stats()
    assert (stats.written, stats.queued, stats.replaced) == (2, 0, 1)
    assert logged() == ["the trace database was moved, replaced, truncated or deleted"]


@pytest.mark.parametrize("change", CHANGES)
def test_spans_in_hand_when_the_files_change_are_written_to_the_new_ones(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    recorder = recorder_at(file.path)
    assert recorder.force_flush(SECONDS)
    changed, batches = threading.Event(), recorder._writer.batches
    # Until then, whatever the interval is: a writer that was busy takes at once what has come meanwhile.
    monkeypatch.setattr(batches, "write", lambda: changed.wait(SECONDS) and BatchWriter.write(batches))
    record_trace("in hand")
    change(file.path)
    record_trace("after")
    changed.set()
    recorder.shutdown(SECONDS)
    assert file.names() == ["in hand", "after"]
    assert file.is_sound()


@pytest.mark.parametrize("change", [move_another_over_it, truncate])
def test_closing_after_a_change_leaves_the_file_that_is_there_as_it_is(
    recorder_at: RecorderAt, file: DatabaseFile, change: Change
) -> None:
    recorder = recorder_at(file.path)
    record_trace("before")
    assert recorder.force_flush(SECONDS)
    change(file.path)
    content = file.path.read_bytes()
    recorder.shutdown()
    assert file.path.read_bytes() == content
    assert [found.name for found in file.path.parent.iterdir()] == [file.path.name]


def test_an_idle_recorder_leaves_replaced_files_so_that_other_processes_read_the_new_ones(
    recorder_at: RecorderAt, file: DatabaseFile
) -> None:
    recorder = recorder_at(file.path)
    record_trace("before")
    assert recorder.force_flush(SECONDS)
    move_another_over_it(file.path)
    wait_until(lambda: recorder.stats().replaced == 1)
    wait_until(lambda: not Path(f"{file.path}-wal").exists())
    assert file.names() == []


def test_a_truncated_file_keeps_its_mode(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    recorder = recorder_at(file.path)
    assert recorder.force_flush(SECONDS)
    file.path.chmod(0o640)
    truncate(file.path)
    record_trace("a")
    assert recorder.force_flush(SECONDS)
    assert file.path.stat().st_mode & 0o777 == 0o640


def test_a_new_log_of_another_process_is_not_overwritten(
    start: Start, recorder_at: RecorderAt, file: DatabaseFile
) -> None:
    recorder = recorder_at(file.path)
    assert recorder.force_flush(SECONDS)
    record_trace("before")
    assert recorder.force_flush(SECONDS)
    with closing(sqlite3.connect(file.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    remove_log_and_index(file.path)
    other = start(
        """
        import sqlite3
        recorder = SQLiteRecorder(path)
        set_trace_processors([recorder])
        with trace("w"):
            record("theirs")
        recorder.force_flush(60)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        file.path,
    )
    assert other.wait() == -9
    record_trace("after")
    assert recorder.force_flush(SECONDS)
    assert file.names() == ["before", "theirs", "after"]
    assert file.is_sound()


def test_two_recorders_of_one_file_both_go_on_after_its_log_was_removed(
    recorder_at: RecorderAt, file: DatabaseFile
) -> None:
    recorders = [recorder_at(file.path), recorder_at(file.path)]
    for recorder in recorders:
        set_trace_processors([recorder])
        record_trace("before")
        assert recorder.force_flush(SECONDS)
    remove_log_and_index(file.path)
    for recorder in recorders:
        set_trace_processors([recorder])
        record_trace("after")
    for recorder in recorders:
        assert recorder.force_flush(SECONDS)
    assert sorted(file.names()) == ["after", "after", "before", "before"]
    assert file.is_sound()


def test_several_processes_go_on_after_their_log_was_removed_and_what_they_wrote_is_readable(
    start: Start, file: DatabaseFile
) -> None:
    """Each has the log open when it is removed: one that had no log open would begin a new one."""
    scripts = [
        start(
            """
            recorder = record_traces(path, flush_interval=0.0)
            for number in range(40):
                with trace("w"):
                    record(*(f"{os.getpid()} {number} {part}" for part in range(3)))
                assert recorder.force_flush(60)
                say(number)
                if number in (2, 10, 18, 26):
                    wait_until(lambda: os.path.exists(f"{path} was changed in round {number}"))
            """,
            file.path,
        )
        for _ in range(3)
    ]
    for rounds in (2, 10, 18, 26):
        for script in scripts:
            script.until(str(rounds))
        remove_log_and_index(file.path)
        Path(f"{file.path} was changed in round {rounds}").touch()
    for script in scripts:
        assert script.wait() == 0, script.err
    expected = [
        f"{script.pid} {number} {part}" for script in scripts for number in range(40) for part in range(3)
    ]
    assert sorted(file.names()) == sorted(expected)
    assert file.is_sound()


@pytest.mark.parametrize("remove", [remove_log_and_index, remove_log])
def test_a_log_that_is_removed_while_it_is_opened_receives_no_rows(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch, remove: Change
) -> None:
    """Nobody else would open it, and the recorder would not notice: no file at the path changes any more."""
    connect, changes = database._connect, [remove]

    def connect_too_late(path: Path, adopt: bool) -> Any:
        connection = connect(path, adopt)
        if changes:
            changes.pop()(path)
        return connection

    monkeypatch.setattr(database, "_connect", connect_too_late)
    recorder = recorder_at(file.path)
    record_trace("a")
    assert recorder.force_flush(SECONDS)
    assert Path(f"{file.path}-wal").stat().st_size
    assert file.names() == ["a"]
    assert not changes


def test_rows_in_a_removed_log_that_another_process_still_reads_are_not_lost(
    start: Start, recorder_at: RecorderAt, file: DatabaseFile
) -> None:
    recorder = recorder_at(file.path)
    record_trace("before")
    assert recorder.force_flush(SECONDS)
    reader = start(
        """
        import sqlite3
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN")
        connection.execute("SELECT COUNT(*) FROM spans").fetchone()
        say("reads")
        until_signal()
        """,
        file.path,
    ).until("reads")
    record_trace("later")
    assert recorder.force_flush(SECONDS)
    remove_log_and_index(file.path)
    record_trace("after")
    recorder.force_flush(0.5)  # cannot succeed
    reader.send(signal.SIGKILL).wait()
    assert recorder.force_flush(SECONDS)
    assert file.names() == ["before", "later", "after"]
    assert file.is_sound()


def test_a_database_that_is_copied_over_the_file_is_kept_even_if_the_copy_has_only_begun(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``cp`` truncates the file before it writes."""
    monkeypatch.setattr(database, "_CONTENT_SECONDS", SECONDS)
    other = file.path.with_name("other.sqlite3")
    backup = recorder_at(other)
    record_trace("in the backup")
    backup.shutdown(SECONDS)
    recorder = recorder_at(file.path)
    record_trace("before")
    assert recorder.force_flush(SECONDS)
    with file.path.open("wb") as copy:
        wait_until(lambda: recorder.stats().replaced == 1)
        copy.write(other.read_bytes())
    record_trace("after")
    assert recorder.force_flush(SECONDS)
    assert file.names() == ["in the backup", "after"]
    assert file.is_sound()


class Changing(RuleBasedStateMachine):
    """After any steps, what was recorded since the last change, or survived it, is readable."""

    folder: Path

    @initialize(interval=st.sampled_from([0.0, 0.001, 30.0]))
    def begin(self, interval: float) -> None:
        self.place = self.folder / f"{time.monotonic_ns()}"
        self.place.mkdir()
        self.file = DatabaseFile(self.place / "t.db")
        self.recorder = SQLiteRecorder(self.file.path, flush_interval=interval, flush_on_sigterm=False)
        set_trace_processors([self.recorder])
        assert self.recorder.force_flush(SECONDS)
        self.expected: list[str] = []
        self.waiting: list[str] = []
        self.ended = 0

    @rule(count=st.integers(1, 5))
    def end_spans(self, count: int) -> None:
        names = [str(self.ended + number) for number in range(count)]
        record_trace(*names)
        self.ended += count
        self.waiting += names

    @rule()
    def flush(self) -> None:
        assert self.recorder.force_flush(SECONDS)
        self.expected += self.waiting
        self.waiting = []

    @rule(change=st.sampled_from(CHANGES))
    def change(self, change: Change) -> None:
        self.flush()
        change(self.file.path)
        if change not in KEEPING:
            self.expected = []

    @rule()
    def read(self) -> None:
        # After a shutdown, the recorder creates no file before the next span.
        if self.waiting or self.expected or self.recorder._writer.thread is not None:
            self.flush()
            store = TraceStore(self.file.path)
            names = [
                span.name for found in store.traces(limit=1_000) for span in store.trace(found.trace_id).spans
            ]
            assert sorted(map(str, names)) == sorted(self.expected)

    @rule()
    def shut_down(self) -> None:
        self.flush()
        self.recorder.shutdown(SECONDS)

    def teardown(self) -> None:
        if not hasattr(self, "recorder"):
            return
        self.end_spans(1)
        self.flush()
        self.recorder.shutdown(SECONDS)
        set_trace_processors([])
        stats = self.recorder.stats()
        assert (stats.written, stats.queued, stats.dropped, stats.failed) == (self.ended, 0, 0, 0)
        assert sorted(self.file.names()) == sorted(self.expected)
        assert self.file.is_sound()
        shutil.rmtree(self.place)


def test_after_any_changes_of_the_files_what_is_counted_as_written_is_readable(folder: Path) -> None:
    run_state_machine_as_test(
        type("ChangingThere", (Changing,), {"folder": folder}),
        settings=settings(max_examples=size(25, 10), stateful_step_count=15, deadline=None),
    )
