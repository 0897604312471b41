"""A file that cannot be written: the run continues, the error is logged once, and spans are written later."""

from __future__ import annotations

import array
import gc
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents import custom_span, generation_span, set_trace_processors, trace
from kantan_llm.tracing import SQLiteTracer

from kantan_agents import Agent, SQLiteRecorder
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.traces.recorder import database
from tests.traces.recorder.database_file import DatabaseFile
from tests.traces.recorder.processes import SECONDS, Start, wait_until
from tests.traces.recorder.spans import record, record_trace

# Far longer than a test may last: a call that returns has not waited this long.
NEVER = 10 * SECONDS

Fix = Callable[[], Any]
RecorderAt = Callable[..., SQLiteRecorder]
Logged = Callable[..., list[str]]


def make_text(path: Path) -> Fix:
    _remove(path)
    path.write_text("Dear diary, " * 1_000)
    return path.unlink


def make_damaged(path: Path) -> Fix:
    _remove(path)
    _fill(path)
    content = bytearray(path.read_bytes())
    content[1024:] = b"\xff" * len(content[1024:])
    path.write_bytes(content)
    return path.unlink


def make_foreign(path: Path) -> Fix:
    _remove(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE traces (ant TEXT)")
        connection.execute("CREATE TABLE spans (bridge TEXT)")
        connection.execute("INSERT INTO spans VALUES ('Tay')")
        connection.commit()
    return lambda: _remove(path)


def remove_folder(path: Path) -> Fix:
    shutil.rmtree(path.parent)
    return path.parent.mkdir


def make_directory(path: Path) -> Fix:
    _remove(path)
    path.mkdir()
    return path.rmdir


def lock(path: Path) -> Fix:
    _fill(path)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN EXCLUSIVE")
    return connection.close


FAILURES = [make_text, make_damaged, make_foreign, remove_folder, make_directory, lock]


def _fill(path: Path) -> None:
    tracer = SQLiteTracer(str(path))
    tracer.get_trace("")
    tracer.shutdown()


def _remove(path: Path) -> None:
    for file in path.parent.glob(path.name + "*"):
        file.unlink()


@pytest.fixture
def file(folder: Path) -> DatabaseFile:
    (folder / "place").mkdir()
    return DatabaseFile(folder / "place" / "traces.sqlite3")


@pytest.mark.parametrize(
    ("failure", "since"),
    [
        *((failure, "later") for failure in FAILURES),
        # Without a directory, and with a directory or another program's tables, no recorder can be created.
        *(
            (failure, "the beginning")
            for failure in FAILURES
            if failure not in (remove_folder, make_directory, make_foreign)
        ),
    ],
)
async def test_a_run_continues_and_its_spans_are_written_when_the_file_works_again(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged, failure: Callable[[Path], Fix], since: str
) -> None:
    if since == "the beginning":
        fix = failure(file.path)
        recorder = recorder_at(file.path)
    else:
        recorder = recorder_at(file.path)
        with trace("early"):
            record("early")
        assert recorder.force_flush()
        fix = failure(file.path)
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("my answer")]] * 2))
    assert (await agent.run_async("my question"))["result"].final_output == "my answer"
    if failure is lock:
        assert not recorder.force_flush(0.1)
    else:
        assert not recorder.force_flush(NEVER)
        assert not recorder.force_flush(NEVER)
    wait_until(lambda: logged("E62"))
    assert (await agent.run_async("and then"))["result"].final_output == "my answer"
    waiting = recorder.stats()
    assert waiting.queued >= 6
    assert waiting.oldest_unwritten > 0
    fix()
    assert recorder.force_flush(SECONDS)
    stats = recorder.stats()
    assert (stats.written, stats.queued, stats.dropped, stats.failed) == (
        waiting.written + waiting.queued,
        0,
        0,
        0,
    )
    assert stats.oldest_unwritten == 0.0
    assert len(file.traces(keywords=["my question"])) == len(file.traces(keywords=["and then"])) == 1
    assert len(file.traces(metadata={"agent_name": "a"})) == 2
    messages = logged()
    assert len(messages) == 2, messages
    assert str(file.path) in messages[0]
    assert messages[1] == "traces are written again"


def test_a_failure_is_logged_once_and_again_if_it_returns(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged
) -> None:
    recorder = recorder_at(file.path)
    assert recorder.force_flush()
    for _ in range(2):
        fix = make_text(file.path)
        record_trace("a", "b")
        for _ in range(4):
            assert not recorder.force_flush(NEVER)
        fix()
        assert recorder.force_flush(SECONDS)
    assert [message.split(": ")[0] for message in logged()] == [
        "[kantan-agents][E62] Traces cannot be written",
        "traces are written again",
    ] * 2


@pytest.mark.parametrize("failure", [make_text, make_damaged])
def test_a_file_that_is_not_a_trace_database_is_not_changed(
    recorder_at: RecorderAt, file: DatabaseFile, failure: Callable[[Path], Fix]
) -> None:
    fix = failure(file.path)
    before = file.path.read_bytes()
    recorder = recorder_at(file.path)
    record_trace("a")
    assert not recorder.force_flush(NEVER)
    recorder.shutdown(0.1)
    assert file.path.read_bytes() == before
    fix()
    wait_until(recorder.force_flush)  # nothing is created while the directory is deleted


# Deleted, replaced, old, shared


def test_after_the_file_was_deleted_a_new_one_is_created(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    recorder = recorder_at(file.path)
    with trace("w"):
        for number in range(4):
            record(str(number))
            assert recorder.force_flush()
            assert file.names() == [str(number)]
            if number % 2:
                _remove(file.path)
            else:
                file.path.unlink()
    assert recorder.stats().written == 4


def test_after_the_file_was_replaced_the_new_one_is_used(
    recorder_at: RecorderAt, file: DatabaseFile, folder: Path
) -> None:
    other = DatabaseFile(folder / "other.sqlite3")
    second = SQLiteRecorder(other.path, flush_on_sigterm=False)
    set_trace_processors([second])
    with trace("other"):
        record("old")
    second.shutdown()
    recorder = recorder_at(file.path)
    with trace("w"):
        record("a")
        assert recorder.force_flush()
        other.path.replace(file.path)
        record("b")
    assert recorder.force_flush()
    assert file.names() == ["old", "b"]
    assert file.is_sound()


@pytest.mark.parametrize("moment", ["_connect", "write_rows"])
def test_replacing_the_file_while_it_is_opened_or_written_loses_no_span(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    recorder = recorder_at(file.path)
    recorder.shutdown()
    original = getattr(database, moment)
    removed = []

    def done_and_removed(*arguments: Any) -> Any:
        result = original(*arguments)
        if not removed:
            removed.append(True)
            _remove(file.path)
        return result

    monkeypatch.setattr(database, moment, done_and_removed)
    record_trace("a")
    assert recorder.force_flush()
    assert file.names() == ["a"]
    assert removed != []


def test_a_file_replaced_each_time_it_is_opened_is_reported(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    recorder = recorder_at(file.path)
    recorder.shutdown()
    original = database._connect

    def connected_and_removed(path: Path, adopt: bool) -> Any:
        connection = original(path, adopt)
        _remove(path)
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(database, "_connect", connected_and_removed)
        record_trace("a")
        assert not recorder.force_flush()
    assert "replaced" in logged("E62")[0]
    assert recorder.force_flush(SECONDS)
    assert file.names() == ["a"]


def test_a_truncated_file_is_filled_again(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    recorder = recorder_at(file.path)
    record_trace("a")
    recorder.shutdown()
    os.truncate(file.path, 0)
    record_trace("b")
    assert recorder.force_flush()
    assert file.names() == ["b"]


def test_dropped_tables_are_created_again(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    recorder = recorder_at(file.path)
    with trace("w"):
        record("a")
        assert recorder.force_flush()
        file.rows("DROP TABLE spans")
        record("b")
    assert recorder.force_flush(SECONDS)
    assert file.names() == ["b"]


def test_tables_dropped_during_opening_are_created_again(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    recorder, make_indexes = recorder_at(file.path), database.make_indexes
    recorder.shutdown()
    drops = iter(["DROP TABLE spans"])

    def dropped_first(connection: sqlite3.Connection) -> None:
        for statement in drops:
            connection.execute(statement)
        make_indexes(connection)

    monkeypatch.setattr(database, "make_indexes", dropped_first)
    record_trace("a")
    assert recorder.force_flush()
    assert (file.names(), logged("E62")) == (["a"], [])


def test_a_database_of_an_older_kantan_llm_is_upgraded_in_place(
    recorder_at: RecorderAt, file: DatabaseFile
) -> None:
    with closing(sqlite3.connect(file.path)) as connection:
        connection.executescript(
            """
            CREATE TABLE traces (id TEXT PRIMARY KEY, workflow_name TEXT, group_id TEXT);
            CREATE TABLE spans (id TEXT PRIMARY KEY, trace_id TEXT, parent_id TEXT, started_at TEXT,
                ended_at TEXT, span_type TEXT, input TEXT, output TEXT, error_json TEXT, raw_json TEXT);
            INSERT INTO traces VALUES ('trace_old', 'old', NULL);
            INSERT INTO spans VALUES ('span_old', 'trace_old', NULL, '2024-01-01T00:00:00+00:00',
                '2024-01-01T00:00:01+00:00', 'custom', 'old input', NULL, 'null', '{}');
            """
        )
    recorder = recorder_at(file.path)
    with trace("old", trace_id="trace_old"):
        record("continued")
    with trace("new", metadata={"k": "v"}), generation_span(usage={"input_tokens": 3}):
        pass
    assert recorder.force_flush()
    assert [found.span_id for found in file.spans(keywords=["old input"])] == ["span_old"]
    assert [found.name for found in file.spans(trace_id="trace_old")] == [None, "continued"]
    (found,) = file.traces(metadata={"k": "v"})
    assert found.metadata == {"k": "v", "usage_total": {"input_tokens": 3}}


def test_kantan_llms_tracer_may_write_at_the_same_time(
    start: Start, recorder_at: RecorderAt, file: DatabaseFile
) -> None:
    recorder = recorder_at(file.path, flush_interval=0.001)
    other = start(
        """
        from agents import generation_span
        from kantan_llm.tracing import SQLiteTracer

        set_trace_processors([SQLiteTracer(path)])
        with trace("shared", trace_id="trace_shared"):
            for number in range(100):
                with generation_span(input=f"theirs {number}", usage={"input_tokens": 1}):
                    pass
                say(number)
        """,
        file.path,
    ).until("0")
    with trace("shared", trace_id="trace_shared"):
        for number in range(100):
            with generation_span(input=f"ours {number}", usage={"input_tokens": 1}):
                pass
            recorder.force_flush(0.001)
    assert other.wait() == 0
    assert other.err == ""
    assert recorder.force_flush(SECONDS)
    spans = file.spans()
    assert sorted(str(span.input) for span in spans) == sorted(
        f"{w} {n}" for w in ("ours", "theirs") for n in range(100)
    )
    assert [span.ingest_seq for span in spans] == list(range(1, 201))
    assert file.traces()[0].metadata == {"usage_total": {"input_tokens": 200, "total_tokens": 0}} or (
        file.traces()[0].metadata == {"usage_total": {"input_tokens": 200}}
    )


# Locked for a while


def test_a_lock_of_three_seconds_loses_no_span(
    start: Start, recorder_at: RecorderAt, file: DatabaseFile, folder: Path, logged: Logged
) -> None:
    """With the journal mode of the recorder's files, and with that of a file created by kantan-llm."""
    old = folder / "old.sqlite3"
    _fill(old)
    recorder = recorder_at(file.path)
    assert recorder.force_flush()
    lockers = [
        start(
            """
            import sqlite3

            connection = sqlite3.connect(path, isolation_level=None)
            connection.execute("BEGIN EXCLUSIVE")
            say("locked")
            time.sleep(3)
            connection.execute("COMMIT")
            """,
            path,
        ).until("locked")
        for path in (file.path, old)
    ]
    second = recorder_at(old)
    set_trace_processors([recorder, second])
    ended = 0
    while any(locker.is_running() for locker in lockers):
        record_trace(str(ended))
        ended += 1
        threading.Event().wait(0.01)
    for each in (recorder, second):
        assert each.force_flush(SECONDS)
        stats = each.stats()
        assert (stats.written, stats.dropped, stats.failed) == (ended, 0, 0)
    assert file.names() == DatabaseFile(old).names() == [str(number) for number in range(ended)]
    assert len(logged("E62")) <= 2
    assert all("E62" in message or message == "traces are written again" for message in logged())


def test_a_flush_waits_for_a_locked_file_until_its_timeout(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged
) -> None:
    recorder = recorder_at(file.path)
    assert recorder.force_flush()
    release = lock(file.path)
    record_trace("a")
    assert not recorder.force_flush(0.05)
    wait_until(lambda: logged("E62"))
    recorder._writer._retry_delay = NEVER  # as after a long lock
    flushed: list[bool] = []
    flush = threading.Thread(target=lambda: flushed.append(recorder.force_flush(NEVER)))
    flush.start()
    wait_until(recorder._queue.markers)
    assert flushed == []
    release()
    flush.join(SECONDS)
    assert flushed == [True]


def test_a_shutdown_while_the_file_is_locked_loses_nothing(
    recorder_at: RecorderAt, file: DatabaseFile
) -> None:
    recorder = recorder_at(file.path)
    assert recorder.force_flush()
    release = lock(file.path)
    record_trace("a")
    recorder.shutdown(0.05)
    release()
    assert recorder.force_flush(SECONDS)
    assert file.names() == ["a"]


# No permission, no disk space


@pytest.mark.parametrize("kind", ["file", "file alone", "directory"])
def test_spans_are_written_as_soon_as_the_permission_is_granted(
    start: Start, file: DatabaseFile, kind: str
) -> None:
    place = file.path.parent
    if kind != "directory":
        _fill(file.path)
        file.path.chmod(0o444)
    place.chmod(0o777 if kind == "file alone" else 0o555)
    script = start(
        f"""
        import logging

        # Before the recorder starts its thread, to which the signal could be delivered otherwise.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message).40s")
        recorder = record_traces(path)
        with trace("w"):
            record("a", "b")
        assert not recorder.force_flush({NEVER})
        assert not recorder.force_flush({NEVER})
        assert recorder.stats().queued == 2
        if {kind != "directory"}:
            from kantan_agents.traces.store import TraceStore

            assert TraceStore(path).traces() == []  # reading creates no blocking file either
        say("waits")
        signal.sigwait([signal.SIGUSR1])
        assert recorder.force_flush({SECONDS})
        say("done")
        """,
        file.path,
        unprivileged=True,
    ).until("waits")
    if kind != "directory":
        file.path.chmod(0o666)
    place.chmod(0o777)
    assert script.send(signal.SIGUSR1).wait() == 0, script.err
    assert file.names() == ["a", "b"]
    assert script.out.splitlines() == [
        "[kantan-agents][E62] Traces cannot be wr",
        "waits",
        "traces are written again",
        "done",
    ]


_FILL_UP = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])  # in the recorder's thread too
recorder = record_traces(path)
ended = 0
with trace("w", metadata={"k": "v"}):
    while True:
        with custom_span(f"{ended}", {"text": "word " * 500}):
            pass
        ended += 1
        if ended % 20 == 0 and not recorder.force_flush(600):
            break
    say(f"full {ended}")
    record("more")
    free_space()
    record("last")
assert recorder.force_flush(60)
stats = recorder.stats()
assert (stats.written, stats.dropped, stats.failed) == (ended + 2, 0, 0), stats
"""


def assert_filled_up(file: DatabaseFile) -> None:
    names = file.names()
    ended = len(names) - 2
    assert ended > 20
    assert names == [*(str(number) for number in range(ended)), "more", "last"]
    assert file.is_sound()
    assert file.traces()[0].metadata == {"k": "v"}


def test_spans_wait_while_the_file_has_its_maximum_size(start: Start, file: DatabaseFile) -> None:
    limit = """
import resource

hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (450_000, hard))


def free_space():
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
"""
    start(limit + _FILL_UP, file.path, wait=True)
    assert_filled_up(file)


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of three quarters of a megabyte, if this process may mount one."""
    if not shutil.which("mount") or os.getuid() != 0:
        pytest.skip("only root mounts")
    disk = folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=768k,mode=777", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(mounted.stderr.decode())
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_spans_wait_while_the_disk_is_full(start: Start, small_disk: Path) -> None:
    file = DatabaseFile(small_disk / "traces.sqlite3")
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 200_000)
    free_space = "def free_space(): os.unlink(sys.argv[2])\n"
    start(free_space + _FILL_UP, file.path, ballast, wait=True)
    assert_filled_up(file)


# A full queue


def names_in(file: DatabaseFile) -> list[int]:
    return [int(name) for name in file.names()]


def blocked(recorder: SQLiteRecorder, path: Path, logged: Logged) -> Fix:
    """Make the file unusable, and let the recorder retry only on request."""
    before = len(logged("E62"))
    fix = make_text(path)
    recorder._writer._retry_delay = NEVER
    record_trace("0")
    wait_until(lambda: len(logged("E62")) > before and not recorder._queue.in_flight)
    return fix


def test_without_a_wait_the_oldest_spans_are_dropped_and_counted(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged
) -> None:
    recorder = recorder_at(file.path, max_queue=10)
    assert recorder.force_flush()
    for _ in range(2):
        before = recorder.stats()
        fix = blocked(recorder, file.path, logged)
        record_trace(*map(str, range(1, 50)))
        stats = recorder.stats()
        assert 5 <= stats.queued <= 10
        assert stats.queued + stats.dropped - before.dropped == 50
        fix()
        assert recorder.force_flush(SECONDS)
        assert names_in(file) == list(range(50))[-stats.queued :]
        _remove(file.path)
    first, again = logged("E63")
    assert "10" in first and str(file.path) in first
    assert first == again


@pytest.mark.parametrize("characters", [100, 10_000, 200_000])
def test_everything_that_waits_for_a_slow_file_takes_no_more_memory_than_max_queue_bytes(
    recorder_at: RecorderAt,
    file: DatabaseFile,
    monkeypatch: pytest.MonkeyPatch,
    logged: Logged,
    characters: int,
) -> None:
    """The queue, the spans that are being written, and their rows."""
    limit = 3_000_000
    recorder = recorder_at(file.path, max_queue_bytes=limit, flush_interval=0.0)
    assert recorder.force_flush(SECONDS)
    write, is_free = database.write_rows, threading.Event()

    def slow(*arguments: Any) -> None:
        is_free.wait(SECONDS)
        write(*arguments)

    monkeypatch.setattr(database, "write_rows", slow)
    count = 3 * limit // characters + 100 if characters > 100 else 10_000
    gc.collect()
    tracemalloc.start()
    try:
        with trace("w"):
            for number in range(count):
                text = f"{number:06}" + "x" * characters
                with generation_span(input=[{"role": "user", "content": text}], output=[{"content": text}]):
                    pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        is_free.set()
    assert peak < limit + 5 * (characters + 1_000)  # the span that is being copied
    assert recorder.force_flush(SECONDS)
    stats = recorder.stats()
    assert stats.dropped > 0 and stats.written > 5
    assert stats.written + stats.dropped == count
    assert file.count() == stats.written
    assert recorder._queue._bytes == 0
    assert len(logged("E63")) == 1


def test_spans_that_the_database_refuses_are_not_kept_in_memory_by_their_errors(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = recorder_at(file.path, flush_interval=30.0)
    assert recorder.force_flush(SECONDS)
    with closing(sqlite3.connect(file.path)) as connection:
        connection.execute("CREATE TRIGGER t BEFORE INSERT ON spans BEGIN SELECT RAISE(ABORT, 'no'); END")
    seen: list[BaseException] = []
    discard = recorder._writer.batches._discard

    def remember(item: Any, error: Exception) -> None:
        seen.append(error)
        discard(item, error)

    monkeypatch.setattr(recorder._writer.batches, "_discard", remember)
    record_trace("a", "b")
    assert recorder.force_flush(SECONDS)
    assert recorder.stats().failed == len(seen) == 2
    assert [error.__traceback__ for error in seen] == [None, None]


def test_a_span_that_cannot_be_written_within_max_queue_bytes_is_dropped_alone(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged
) -> None:
    recorder = recorder_at(file.path, max_queue_bytes=100_000)
    with trace("w"):
        record("before")
        with custom_span("large", {"text": "x" * 30_000}):
            pass
        record("after")
    assert recorder.force_flush(SECONDS)
    assert file.names() == ["before", "after"]
    assert recorder.stats().dropped == len(logged("E63")) == 1


def test_a_thread_waits_for_bytes_as_for_places(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    recorder = recorder_at(file.path, max_queue_bytes=100_000, max_wait=NEVER, flush_interval=0.0)

    def work() -> None:
        with trace("w"):
            for number in range(60):
                with custom_span(str(number), {"text": "x" * 5_000}):
                    pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert recorder.force_flush(SECONDS)
    assert (recorder.stats().written, recorder.stats().dropped, recorder._queue._bytes) == (180, 0, 0)


def test_the_size_of_dropped_spans_does_not_count(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged
) -> None:
    recorder = recorder_at(file.path, max_queue=10, max_queue_bytes=30_000)
    assert recorder.force_flush()
    fix = blocked(recorder, file.path, logged)
    with trace("w"):
        for number in range(1, 200):
            with custom_span(str(number), {"text": "x" * 1_000}):
                pass
            assert recorder.stats().queued >= min(number, 8)
    fix()
    assert recorder.force_flush(SECONDS)
    assert names_in(file)[-8:] == list(range(192, 200))


def test_traces_are_not_dropped_so_that_every_remaining_span_has_its_metadata(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged
) -> None:
    recorder = recorder_at(file.path, max_queue=10)
    assert recorder.force_flush()
    fix = blocked(recorder, file.path, logged)
    first = trace("first", metadata={"number": -1})
    first.start()
    for number in range(100):
        with trace(str(number), metadata={"number": number}):
            record(str(number))
    record("-1", parent=first)
    first.finish()
    fix()
    assert recorder.force_flush(SECONDS)
    left = names_in(file)
    assert left[-2:] == [99, -1]
    assert len(left) >= 4
    found = file.rows(
        "SELECT spans.name, json_extract(metadata_json, '$.number') "
        "FROM spans JOIN traces ON trace_id = traces.id"
    )
    assert {int(name): number for name, number in found} == {number: number for number in left}


def test_with_a_wait_threads_wait_while_the_queue_is_full_and_nothing_is_lost(
    recorder_at: RecorderAt, file: DatabaseFile
) -> None:
    recorder = recorder_at(file.path, max_queue=10, max_wait=NEVER)
    assert recorder.force_flush()
    release = lock(file.path)
    ended: list[int] = []

    def work(first: int) -> None:
        with trace("w"):
            for number in range(first, first + 50):
                record(str(number))
                ended.append(number)

    threads = [threading.Thread(target=work, args=[first], daemon=True) for first in (0, 50)]
    for thread in threads:
        thread.start()
    wait_until(lambda: recorder.stats().queued >= 8)
    assert len(ended) <= 12
    release()
    for thread in threads:
        thread.join(SECONDS)
    assert recorder.force_flush()
    assert sorted(names_in(file)) == list(range(100))
    assert recorder.stats().dropped == 0


def test_after_the_wait_the_oldest_spans_are_dropped(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged
) -> None:
    recorder = recorder_at(file.path, max_queue=10, max_wait=0.001)
    assert recorder.force_flush()
    fix = blocked(recorder, file.path, logged)
    record_trace(*map(str, range(1, 30)))
    stats = recorder.stats()
    assert stats.queued + stats.dropped == 30
    fix()
    assert recorder.force_flush(SECONDS)
    assert names_in(file) == list(range(30))[-stats.queued :]


def test_a_log_handler_that_records_spans_does_not_wait(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    """It runs on the recorder's own thread, which must not wait for itself."""
    recorder = recorder_at(file.path, max_queue=2, max_wait=NEVER)
    assert recorder.force_flush()

    class Handler(logging.Handler):
        def emit(self, message: logging.LogRecord) -> None:
            recorder.force_flush(NEVER)
            with trace("logged"):
                record("1", "2", "3")

    handler = Handler()
    logger = logging.getLogger("kantan_agents.tracing")
    logger.addHandler(handler)
    try:
        fix = make_text(file.path)
        record_trace("0")
        wait_until(lambda: recorder.stats().dropped)
        fix()
        wait_until(lambda: recorder.force_flush(SECONDS))
    finally:
        logger.removeHandler(handler)


# Strange values


class Unprintable:
    def __str__(self) -> str:
        raise KeyError("no text")

    __repr__ = __str__


class Printable:
    def __str__(self) -> str:
        return "said"


def a_cycle() -> Any:
    cycle: dict[str, Any] = {"k": [1]}
    cycle["k"].append(cycle)
    return cycle


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


STRANGE = {
    "half a surrogate pair": "x\ud800y",
    "half a pair as a key": {"\ud800": 1},
    "a huge int": 2**70,
    "an int that Python does not write": [10**5_000],
    "NaN": [float("nan"), float("inf")],
    "bytes": b"\xff\x00",
    "a NUL": "a\x00b",
    "a set": {1, 2},
    "keys of all kinds": {1: "a", None: "b", False: "c", 2.5: "d"},
    "keys that JSON does not have": {(1, 2): "a", b"k": "b", Printable(): "c"},
    "a cycle": a_cycle(),
    "a text that raises": Unprintable(),
    "deep inside, a text that raises": {"a": [Unprintable(), {"b": Unprintable()}]},
    "a key that raises": {Unprintable(): 1},
    "an object": Printable(),
    "an array": array.array("d", [0.5]),
    "200 levels": deep(200),
    "a JSON schema": {"type": ["string", "null"], "properties": {"type": {"type": []}}},
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_span_with_a_strange_value_anywhere_is_still_recorded(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged, name: str
) -> None:
    value = STRANGE[name]
    recorder = recorder_at(file.path)
    with trace("w", metadata={"v": value, "k": "v"}) as opened:
        with custom_span("custom", {"v": value}):
            pass
        for number, place in enumerate(("input", "output", "model_config", "usage")):
            given = {place: [value] if place in ("input", "output") else {"v": value}}
            with generation_span(**given, model=str(number)):
                pass
        with custom_span("judge", {"rubric": {"score": 1, "comments": [value]}}):
            pass
        with custom_span("failed") as span:
            span.set_error({"message": "m", "data": {"v": value}})
        with custom_span("plain", {"a": 1}):
            pass
    assert opened is not None
    assert recorder.force_flush()
    stats = recorder.stats()
    assert (stats.written, stats.failed) == (8, 0), logged()
    spans = file.spans(trace_id=opened.trace_id)
    assert [span.name or span.raw["span_data"]["model"] for span in spans] == [
        "custom",
        *("0", "1", "2", "3"),
        "judge",
        "failed",
        "plain",
    ]
    assert spans[5].rubric["score"] == 1
    assert spans[6].error["message"] == "m"
    assert [found.trace_id for found in file.traces(metadata={"k": "v"})] == [opened.trace_id]
    assert logged() == []


@pytest.mark.parametrize("usage", [{"input_tokens": float("nan")}, {"\ud800": 1}, {"k": 2**70}, {(1, 2): 3}])
def test_strange_usage_leaves_the_file_searchable_by_metadata(
    recorder_at: RecorderAt, file: DatabaseFile, usage: Any
) -> None:
    recorder = recorder_at(file.path)
    with trace("w", metadata={"k": "v"}), generation_span(usage=usage):
        pass
    assert recorder.force_flush()
    assert recorder.stats().failed == 0
    assert len(file.traces(metadata={"k": "v"})) == 1


class Broken:
    """A span or trace whose ``export`` raises."""

    trace_id = "trace_broken"
    span_id = "span_broken"

    def export(self) -> dict[str, Any]:
        raise RuntimeError("broken")


def test_spans_that_cannot_be_recorded_are_counted_and_logged_once(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged
) -> None:
    recorder = recorder_at(file.path)
    broken: Any = Broken()
    recorder.on_trace_start(broken)
    for _ in range(3):
        recorder.on_span_end(broken)
    recorder.on_trace_end(broken)
    record_trace("a")
    assert recorder.force_flush()
    stats = recorder.stats()
    assert (stats.written, stats.failed) == (1, 3)
    (message,) = logged("E65")
    assert "RuntimeError: broken" in message


def test_a_span_nested_too_deeply_counts_once_and_costs_no_other_span(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged
) -> None:
    recorder = recorder_at(file.path)
    assert recorder.force_flush()
    fix = lock(file.path)
    with trace("w", metadata={"deep": deep(100_000)}):
        record("before")
        for levels in (900, 1_500, 100_000):
            with custom_span("deep", {"v": deep(levels)}):
                pass
        record("after")
    for _ in range(3):
        recorder.force_flush(0.01)
    fix()
    assert recorder.force_flush(SECONDS)
    stats = recorder.stats()
    assert stats.written + stats.failed == 5
    names = [name for name in file.names() if name != "deep"]
    assert names == ["before", "after"]
    assert len(logged("E65")) <= 4
