"""The recorder's options, counters, thread and file, and its use as a trace processor."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import random
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import agents.tracing
import anyio
import attrs
import kantan_llm.tracing
import pytest
from agents import add_trace_processor, custom_span, flush_traces, set_trace_processors, trace
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import kantan_agents.traces.recorder as public
from kantan_agents import Agent, RecorderStats, SQLiteRecorder, record_traces
from kantan_agents.errors import InvalidOptionError, TraceDatabaseError
from kantan_agents.testing import OfflineServer, ScriptedModel, ScriptedToolCall, assistant_message
from kantan_agents.traces.recorder import recorder as recorder_module
from kantan_agents.traces.recorder import writer
from kantan_agents.traces.recorder.sections import Sections
from kantan_agents.traces.recorder.settled import SettledSpan
from kantan_agents.traces.recorder.span_queue import SpanQueue
from kantan_agents.traces.recorder.waking import WriterWake
from tests.traces.recorder.database_file import DatabaseFile
from tests.traces.recorder.processes import SECONDS, Start, wait_until
from tests.traces.recorder.spans import record, record_trace

RecorderAt = Callable[..., SQLiteRecorder]
Logged = Callable[..., list[str]]


@pytest.fixture
def short_switches() -> Iterator[None]:
    """Let Python switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(count: int, work: Callable[[int], Any]) -> None:
    """Call ``work`` in ``count`` concurrent threads; raise the first error of any of them."""
    errors = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


# Options


def test_all_public_names_are_documented() -> None:
    assert public.__all__ == sorted(public.__all__)
    for name in public.__all__:
        assert getattr(public, name).__doc__


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *[("path", value) for value in ("", ":memory:", None, 3, b"x.db", ["x.db"])],
        *[("max_queue", value) for value in (0, -1, 1.5, True, "1", None, math.inf)],
        *[("max_queue_bytes", value) for value in (0, -1, 1.5, True, "1", None)],
        *[("max_wait", value) for value in (-1, -0.5, math.nan, math.inf, True, "1", None)],
        *[("flush_interval", value) for value in (-1, math.nan, math.inf, False, "1", None)],
        *[("redact", value) for value in (1, "x", {})],
    ],
)
@pytest.mark.parametrize("make", [SQLiteRecorder, record_traces])
def test_an_error_for_an_invalid_option_names_it(make: Any, tmp_path: Path, option: str, value: Any) -> None:
    options = {"path": tmp_path / "t.db", "flush_on_sigterm": False, option: value}
    with pytest.raises(InvalidOptionError) as caught:
        make(**options)
    assert (caught.value.code, caught.value.option) == ("E75", option)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "reason"), [(".", "it is a directory"), ("no/such.db", "its directory does not exist")]
)
def test_a_path_that_cannot_be_a_file_is_an_error(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(TraceDatabaseError) as caught:
        SQLiteRecorder(tmp_path / name)
    assert caught.value.code == "E60"
    assert caught.value.reason == reason
    assert str(tmp_path) in str(caught.value)


def test_a_path_that_the_system_does_not_accept_is_an_error(tmp_path: Path) -> None:
    for path in (f"{tmp_path}/a\0b.db", f"{tmp_path}/" + "x" * 5_000):
        with pytest.raises((TraceDatabaseError, InvalidOptionError)):
            SQLiteRecorder(path)


@attrs.frozen
class Somewhere:
    path: str

    def __fspath__(self) -> str:
        return self.path


@pytest.mark.parametrize(
    "name", ["traces.sqlite3", "a?b#c%20 d.db", "file:x.db", "'q\".db", "跡.db", "x.db-wal"]
)
@pytest.mark.parametrize("kind", [str, Path, Somewhere])
def test_any_kind_of_path_and_any_name_is_accepted(
    recorder_at: RecorderAt, folder: Path, name: str, kind: Any
) -> None:
    path = f"{folder}/{name}"
    recorder = recorder_at(kind(path))
    record_trace("a")
    assert recorder.force_flush()
    assert recorder.path == Path(path)
    assert DatabaseFile(Path(path)).names() == ["a"]
    recorder.shutdown()
    assert [found.name for found in folder.iterdir()] == [name]


def test_a_relative_path_is_resolved_once(
    recorder_at: RecorderAt, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder)
    recorder = recorder_at("traces.sqlite3")
    recorder.shutdown()
    monkeypatch.chdir(folder / "elsewhere")
    record_trace("a")
    assert recorder.force_flush()
    assert DatabaseFile(folder / "traces.sqlite3").names() == ["a"]
    assert list((folder / "elsewhere").iterdir()) == []


def test_a_link_is_followed(recorder_at: RecorderAt, folder: Path) -> None:
    (folder / "link.db").symlink_to(folder / "real.db")
    recorder = recorder_at(folder / "link.db")
    record_trace("a")
    assert recorder.force_flush()
    assert DatabaseFile(folder / "real.db").names() == ["a"]


def test_the_file_is_created_with_the_recorder(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    recorder = recorder_at(file.path)
    assert recorder.force_flush()
    assert file.traces() == []
    assert file.count() == 0


def test_the_repr_shows_path_and_counts(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    recorder = recorder_at(file.path)
    record_trace("a", "b")
    assert recorder.force_flush()
    assert repr(recorder) == f"SQLiteRecorder({str(file.path)!r}, written=2, queued=0)"


@pytest.mark.parametrize("seconds", [math.inf, 1e300, 0, -1, 1e-9])
def test_any_timeout_is_accepted(recorder_at: RecorderAt, file: DatabaseFile, seconds: float) -> None:
    recorder = recorder_at(file.path)
    record_trace("a")
    flushed = recorder.force_flush(seconds)
    assert flushed or seconds < 1
    recorder.shutdown(seconds)
    assert recorder.force_flush()
    assert file.names() == ["a"]


@pytest.mark.parametrize("seconds", [0, 1e300])
def test_any_interval_and_any_wait_is_accepted(
    recorder_at: RecorderAt, file: DatabaseFile, seconds: float
) -> None:
    recorder = recorder_at(file.path, flush_interval=seconds, max_wait=seconds, max_queue=3)
    with trace("w"):
        for number in range(50):
            record(str(number))
            if not seconds:
                assert recorder.force_flush()
    assert recorder.force_flush()
    assert file.names() == [str(number) for number in range(50)]


def test_spans_beyond_max_queue_bytes_are_dropped_while_the_file_is_unusable(
    recorder_at: RecorderAt, folder: Path, file: DatabaseFile, logged: Logged
) -> None:
    recorder = recorder_at(file.path, max_queue_bytes=50_000)
    assert recorder.force_flush()
    file.path.unlink()
    file.path.mkdir()
    with trace("w", metadata={"k": "v"}):
        for number in range(12):
            with custom_span(str(number), {"text": "x" * 10_000}):
                pass
            assert not recorder.force_flush(SECONDS)
    stats = recorder.stats()
    assert 3 <= stats.queued <= 5
    assert stats.queued + stats.dropped == 12
    file.path.rmdir()
    assert recorder.force_flush(SECONDS)
    assert file.names() == [str(number) for number in range(12)][-stats.queued :]
    assert file.traces()[0].metadata == {"k": "v"}
    (logged_message,) = logged("E63")
    assert "50000" in logged_message


# Counts


class Counting(RuleBasedStateMachine):
    """After any sequence of steps, every ended span is in exactly one of the four counts."""

    folder: Path

    @initialize(max_queue=st.integers(1, 12), interval=st.sampled_from([0.0, 0.001, 30.0]))
    def begin(self, max_queue: int, interval: float) -> None:
        self.file = DatabaseFile(self.folder / f"{time.monotonic_ns()}.db")
        self.recorder = SQLiteRecorder(
            self.file.path, max_queue=max_queue, flush_interval=interval, flush_on_sigterm=False
        )
        set_trace_processors([self.recorder])
        self.ended = 0
        self.lock: sqlite3.Connection | None = None
        self.before = self.recorder.stats()

    @rule(count=st.integers(1, 15))
    def end_spans(self, count: int) -> None:
        with trace("w"):
            for _ in range(count):
                record(str(self.ended))
                self.ended += 1

    @rule()
    def end_a_broken_span(self) -> None:
        class Broken:
            span_id = "span_broken"

            def export(self) -> None:
                raise RuntimeError

        self.recorder.on_span_end(Broken())
        self.ended += 1

    @rule()
    def end_a_span_too_deep_to_be_written(self) -> None:
        deep: list[Any] = []
        for _ in range(1_500):
            deep = [deep]
        with trace("w"), custom_span("deep", {"v": deep}):
            pass
        self.ended += 1

    @rule(seconds=st.sampled_from([0.0, 0.01]))
    def flush(self, seconds: float) -> None:
        self.recorder.force_flush(seconds)

    @rule()
    def shut_down(self) -> None:
        self.recorder.shutdown(0.01)

    @rule()
    def lock_or_unlock(self) -> None:
        if self.lock is not None:
            self.lock.close()
            self.lock = None
        else:
            connection = sqlite3.connect(self.file.path, isolation_level=None)
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error:  # the recorder is writing
                connection.close()
            else:
                self.lock = connection

    @invariant()
    def counts_add_up(self) -> None:
        stats = self.recorder.stats()
        assert stats.written + stats.queued + stats.dropped + stats.failed == self.ended
        assert (stats.oldest_unwritten > 0) == (stats.queued > 0)
        for name in ("written", "dropped", "failed"):
            assert getattr(stats, name) >= getattr(self.before, name)
        self.before = stats

    def teardown(self) -> None:
        if not hasattr(self, "recorder"):
            return
        if self.lock is not None:
            self.lock.close()
        assert self.recorder.force_flush(SECONDS)
        stats = self.recorder.stats()
        self.recorder.shutdown()
        set_trace_processors([])
        assert stats.queued == 0
        assert stats.oldest_unwritten == 0.0
        assert stats.written + stats.dropped + stats.failed == self.ended
        names = [int(name) for name in self.file.names() if name != "deep"]
        assert names == sorted(names)
        assert self.file.count() == stats.written


def test_every_ended_span_is_in_exactly_one_of_the_counts(folder: Path) -> None:
    run_state_machine_as_test(
        type("CountingThere", (Counting,), {"folder": folder}),
        settings=settings(max_examples=25, stateful_step_count=20, deadline=None),
    )


def test_counts_add_up_at_every_moment(
    recorder_at: RecorderAt, file: DatabaseFile, short_switches: None
) -> None:
    recorder = recorder_at(file.path, flush_interval=0.0, max_queue=50)
    begun, ended = [0] * 4, [0] * 4
    over = threading.Event()
    wrong: list[Any] = []

    def look() -> None:
        while not over.is_set():
            least = sum(ended)
            stats = recorder.stats()
            most = sum(begun)
            if not least <= stats.written + stats.queued + stats.dropped + stats.failed <= most:
                wrong.append((least, stats, most))

    looking = threading.Thread(target=look)
    looking.start()

    def work(number: int) -> None:
        with trace("w"):
            for n in range(300):
                begun[number] += 1
                record(f"{number} {n}")
                ended[number] += 1

    in_threads(4, work)
    over.set()
    looking.join()
    assert recorder.force_flush(SECONDS)
    assert wrong == []
    stats = recorder.stats()
    assert stats.written + stats.dropped == 1_200
    assert file.count() == stats.written


def test_stats_are_frozen_and_comparable() -> None:
    assert RecorderStats(1, 2, 3, 4, 0.5) == RecorderStats(1, 2, 3, 4, 0.5)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        RecorderStats(1, 2, 3, 4, 0.5).written = 2


# Flush


@pytest.mark.fast("a SQLite file")
def test_after_a_flush_the_span_is_in_the_file_despite_other_threads(
    recorder_at: RecorderAt, file: DatabaseFile, short_switches: None
) -> None:
    recorder = recorder_at(file.path, flush_interval=0.0)

    def work(number: int) -> None:
        with trace("w"):
            for n in range(25):
                record(f"{number} {n}")
                assert recorder.force_flush(SECONDS)
                query = "SELECT COUNT(*) FROM spans WHERE name = ?"
                assert file.rows(query, f"{number} {n}") == [(1,)]

    in_threads(4, work)


def test_a_flush_without_spans_returns_at_once(recorder: SQLiteRecorder) -> None:
    assert recorder.force_flush()
    assert recorder.force_flush(0)
    recorder.shutdown()
    assert recorder.force_flush(0)
    assert recorder._writer.thread is None


async def test_a_flush_can_be_awaited_and_cancelled(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    recorder = recorder_at(file.path)
    assert await recorder.force_flush_async()
    record_trace("a")
    assert await recorder.force_flush_async(SECONDS)
    assert file.names() == ["a"]
    lock = sqlite3.connect(file.path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    record_trace("b")
    assert not await recorder.force_flush_async(0.01)
    with anyio.move_on_after(0.01) as scope:
        await recorder.force_flush_async(SECONDS)
    assert scope.cancelled_caught
    lock.close()
    assert await recorder.force_flush_async(SECONDS)
    assert file.names() == ["a", "b"]


# The thread and the file


FILES = Path("/proc/self/fd")
needs_proc = pytest.mark.skipif(not FILES.is_dir(), reason="no /proc")


Threads = Callable[[], list[threading.Thread]]


@pytest.fixture
def recorder_threads() -> Threads:
    """``recorder_threads()``: the threads that recorders of this test have started."""
    before = set(threading.enumerate())

    def found() -> list[threading.Thread]:
        return [
            thread for thread in threading.enumerate() if "recorder" in thread.name and thread not in before
        ]

    return found


def open_files(place: Path) -> list[str]:
    """Return the files of a database, or in a folder, that this process has open."""
    found = []
    for number in FILES.iterdir():
        try:
            found.append(str(number.readlink()))
        except OSError:  # the descriptor of the listing itself
            continue
    return [name for name in found if name.startswith(str(place))]


@needs_proc
def test_shutdown_ends_the_thread_and_closes_the_file_until_the_next_span(
    recorder_threads: Threads, recorder: SQLiteRecorder, file: DatabaseFile
) -> None:
    for number in range(3):
        record_trace(str(number))
        assert recorder.force_flush()
        assert open_files(file.path) != []
        recorder.shutdown()
        assert recorder_threads() == []
        assert open_files(file.path) == []
        assert [found.name for found in file.path.parent.iterdir()] == [file.path.name]
    recorder.shutdown()
    assert file.names() == ["0", "1", "2"]


@needs_proc
def test_an_idle_thread_ends_and_starts_again_with_the_next_span(
    recorder_threads: Threads, recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "IDLE_SECONDS", 0.01)
    recorder = recorder_at(file.path, flush_interval=0.001)
    for number in range(3):
        record_trace(str(number))
        wait_until(lambda number=number: recorder.stats().written == number + 1)
        wait_until(lambda: recorder_threads() == [])
        assert open_files(file.path) == []
    assert file.names() == ["0", "1", "2"]


def test_spans_that_end_while_the_idle_thread_ends_are_not_lost(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch, short_switches: None
) -> None:
    monkeypatch.setattr(writer, "IDLE_SECONDS", 0.0001)
    recorder = recorder_at(file.path, flush_interval=0.0)
    pauses = random.Random(0)

    def work(number: int) -> None:
        with trace("w"):
            for n in range(60):
                record(f"{number} {n}")
                time.sleep(pauses.random() / 500)

    in_threads(5, work)
    # No more spans end and no flush is requested: the rest must be written without one.
    wait_until(lambda: recorder.stats().queued == 0, lambda: str(recorder.stats()))
    assert recorder.stats().written == file.count() == 300


def test_spans_that_end_during_shutdown_are_written(
    recorder_at: RecorderAt, file: DatabaseFile, short_switches: None
) -> None:
    recorder = recorder_at(file.path, flush_interval=0.001)

    def work(number: int) -> None:
        with trace("w"):
            for n in range(60):
                record(f"{number} {n}")
                if number == 0:
                    recorder.shutdown(SECONDS)
                else:
                    time.sleep(0.0005)

    in_threads(4, work)
    wait_until(lambda: recorder.stats().queued == 0, lambda: str(recorder.stats()))
    assert recorder.stats().written == file.count() == 240


def test_a_span_that_ends_in_a_destructor_during_the_thread_start_does_not_wait(
    start: Start, file: DatabaseFile
) -> None:
    start(
        """
        recorder = SQLiteRecorder(path, max_queue=1, max_wait=3600)
        set_trace_processors([recorder])
        recorder.shutdown()
        with trace("before"):
            spans = [custom_span("destroyed"), custom_span("destroyed")]
        recorder.shutdown()

        class Thread(threading.Thread):
            def __init__(self, *args, **options):
                while spans:
                    spans.pop().__enter__().__exit__(None, None, None)
                super().__init__(*args, **options)

        threading.Thread = Thread
        with trace("w"):  # starts the thread
            pass
        assert recorder.force_flush(60)
        stats = recorder.stats()
        # The writer may take one before the queue, which is too long meanwhile, is cut.
        assert (stats.written + stats.dropped, stats.queued, spans) == (2, 0, []), stats
        """,
        file.path,
        wait=True,
    )


def test_a_destructor_while_the_writer_takes_items_drops_none_that_it_does_not_count() -> None:
    """From Python 3.12 on, destructors run between any two operations, also in the middle of a change."""
    sections, dropped = Sections(), []
    queue = SpanQueue(
        limit=2,
        max_bytes=1_000_000,
        max_wait=60.0,
        waking=WriterWake(0.0),
        may_wait=lambda: not sections.hold_this_thread(),
        is_served=lambda: True,
        on_drop=lambda: dropped.append(None),
        sections=sections,
    )

    class Taken(list[Any]):
        def append(self, item: Any) -> None:
            super().append(item)
            if item is first:
                queue.put(late)

    first, second, late = (SettledSpan(name, 100, 0.0) for name in "123")
    queue.put(first)
    queue.put(second)
    queue.in_flight = Taken()
    marker = queue.put_marker()
    assert [*queue.take(1)] == [first]
    assert queue.unwritten() == [first, marker, late]  # the oldest that waited made space
    assert (queue.dropped, dropped) == (1, [None])


@pytest.mark.parametrize("max_queue", [5, 20_000])
def test_spans_that_end_in_destructors_at_any_moment_are_recorded(
    start: Start, file: DatabaseFile, max_queue: int
) -> None:
    """The garbage collector may run a destructor that ends a span in the middle of the recorder."""
    start(
        """
        import gc

        recorder = SQLiteRecorder(path, flush_interval=0.0, max_queue=int(sys.argv[2]), max_wait=60.0)
        set_trace_processors([recorder])

        class Ending:
            def __init__(self, name, parent):
                self.itself = self
                self.span = custom_span(name, parent=parent)
                self.span.start()

            def __del__(self):
                self.span.finish()

        def work(number):
            with trace("w") as opened:
                for n in range(60):
                    Ending(f"{number} {n} destroyed", opened)
                    record(f"{number} {n}")
                    if n % 10 == 0:
                        recorder.stats()
                        recorder.shutdown(60.0)

        gc.set_threshold(20, 1, 1)
        threads = [threading.Thread(target=work, args=[number]) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        assert recorder.force_flush(60)
        stats = recorder.stats()
        # The recorder's own thread does not wait if the queue is full.
        assert (stats.written + stats.dropped, stats.queued, stats.failed) == (240, 0, 0), stats
        say(stats.written)
        """,
        file.path,
        max_queue,
        wait=True,
    )
    written = int(start.started[0].out)
    assert len(set(file.names())) == file.count() == written
    assert written == 240 or max_queue == 5
    assert file.is_sound()


@needs_proc
def test_an_unreferenced_recorder_is_flushed_and_collected(
    recorder_threads: Threads, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "IDLE_SECONDS", 0.01)
    file = DatabaseFile(folder / "traces.sqlite3")
    gone: list[str] = []
    recorder: Any = SQLiteRecorder(file.path, flush_on_sigterm=False)
    weakref.finalize(recorder, gone.append, "gone")
    set_trace_processors([recorder])
    record_trace("a", "b")
    set_trace_processors([])
    del recorder
    wait_until(lambda: gc.collect() is not None and gone)
    assert file.names() == ["a", "b"]
    assert recorder_threads() == []
    assert open_files(file.path) == []


@needs_proc
def test_many_recorders_leave_no_thread_and_no_open_file(recorder_threads: Threads, folder: Path) -> None:
    for number in range(50):
        recorder = SQLiteRecorder(folder / f"{number % 7}.db", flush_on_sigterm=False)
        set_trace_processors([recorder])
        record_trace("a")
        recorder.shutdown()
    assert recorder_threads() == []
    assert open_files(folder) == []
    assert sum(DatabaseFile(folder / f"{number}.db").count() for number in range(7)) == 50


@needs_proc
@pytest.mark.parametrize("same_file", [True, False])
def test_record_traces_again_and_again_leaves_one_thread_and_one_open_database(
    recorder_threads: Threads, folder: Path, same_file: bool
) -> None:
    paths = [folder / ("same.db" if same_file else f"{number}.db") for number in range(30)]
    try:
        for path in paths:
            recorder = record_traces(path, flush_on_sigterm=False, flush_interval=30.0)
            record_trace("a")
            assert len(recorder_threads()) <= 1
        assert recorder.force_flush(SECONDS)
        assert all(name.startswith(str(paths[-1])) for name in open_files(folder))
    finally:
        set_trace_processors([])
        kantan_llm.tracing.set_trace_processors([])
        recorder.shutdown()
    assert sum(DatabaseFile(path).count() for path in {*paths}) == 30
    assert recorder_threads() == []


@needs_proc
def test_record_traces_on_an_event_loop_closes_the_recorder_before_without_waiting(
    recorder_threads: Threads, folder: Path
) -> None:
    """A wait would block the loop, which alone releases the lock of the first file."""

    async def main() -> SQLiteRecorder:
        first = record_traces(folder / "0.db", flush_on_sigterm=False)
        assert await first.force_flush_async(SECONDS)
        record_trace("a")
        lock = sqlite3.connect(folder / "0.db", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        for number in range(1, 10):
            recorder = record_traces(folder / f"{number}.db", flush_on_sigterm=False)
            record_trace("a")
        lock.close()
        return recorder

    last = asyncio.run(main())
    wait_until(lambda: len(recorder_threads()) == 1)
    set_trace_processors([])
    kantan_llm.tracing.set_trace_processors([])
    last.shutdown()
    assert [DatabaseFile(folder / f"{number}.db").names() for number in range(10)] == [["a"]] * 10
    assert open_files(folder) == []


def test_a_recorder_that_was_replaced_can_be_used_again(folder: Path) -> None:
    first = record_traces(folder / "1.db", flush_on_sigterm=False)
    second = record_traces(folder / "2.db", flush_on_sigterm=False)
    add_trace_processor(first)
    record_trace("a")
    set_trace_processors([])
    kantan_llm.tracing.set_trace_processors([])
    for recorder in (first, second):
        recorder.shutdown()
        assert DatabaseFile(recorder.path).names() == ["a"]


def test_several_recorders_of_the_same_or_other_files_work_together(
    recorder_at: RecorderAt, folder: Path
) -> None:
    paths = [folder / name for name in ("one.db", "one.db", "two.db")]
    recorders = [recorder_at(path, flush_interval=0.001) for path in paths]
    set_trace_processors(recorders[1:])
    record_trace(*map(str, range(50)))
    set_trace_processors(recorders[:1])
    record_trace(*map(str, range(50)))
    for recorder in recorders:
        assert recorder.force_flush(SECONDS)
        assert recorder.stats().written == 50
    assert DatabaseFile(paths[0]).count() == 100
    assert DatabaseFile(paths[2]).count() == 50


def test_the_memory_for_traces_that_never_end_is_limited(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "_OPEN_TRACES", 5)
    recorder = recorder_at(file.path)
    opened = [trace(str(number), metadata={"n": number}) for number in range(20)]
    for each in opened:
        each.start()
    for each in opened[:15]:
        each.finish()
    assert len(recorder._open) <= 5 + 15
    assert recorder.force_flush()
    assert sorted(found.metadata["n"] for found in file.traces()) == list(range(20))


# The event loop


async def test_nothing_blocks_the_event_loop(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    from blockbuster import blockbuster_ctx

    recorder = recorder_at(file.path, flush_interval=0.001)

    async def tool() -> str:
        """Do it."""
        return "done"

    with OfflineServer([ScriptedToolCall("tool"), "warm"] + [ScriptedToolCall("tool"), "x"] * 3) as server:
        bundle = server.bundle()
        agent = Agent("a", "b", model=bundle, tools=[tool])
        await agent.run_async("import what is imported late")
        with blockbuster_ctx():
            with pytest.raises(Exception, match=r"(?i)blocking"):
                time.sleep(0)  # noqa: ASYNC251 - the check itself is checked
            for number in range(3):
                await agent.run_async("hi")
                recorder.stats()
                if number == 1:
                    # With the next span, a thread is started.
                    await anyio.to_thread.run_sync(recorder.shutdown)
            assert await recorder.force_flush_async()
        await bundle.client.close()
    assert len(file.traces()) == 4


def test_the_flush_at_the_end_of_a_loop_causes_no_error(
    recorder_at: RecorderAt, file: DatabaseFile, logged: Logged
) -> None:
    recorder_at(file.path)
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * 40))

    async def main() -> None:
        await asyncio.gather(*(agent.run_async(f"question {n}") for n in range(20)))

    asyncio.run(main(), debug=True)
    assert len(file.traces()) == 20
    asyncio.run(main())
    assert len(file.traces()) == 40
    assert logged() == []


# In the SDK and in kantan-llm


class Other(agents.tracing.TracingProcessor):
    """Another trace processor."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_trace_start(self, trace: Any) -> None:
        self.seen.append(trace)

    def on_trace_end(self, trace: Any) -> None:
        self.seen.append(trace)

    def on_span_start(self, span: Any) -> None:
        self.seen.append(span)

    def on_span_end(self, span: Any) -> None:
        self.seen.append(span)

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


@pytest.fixture
def recorded(file: DatabaseFile) -> Iterator[SQLiteRecorder]:
    recorder = record_traces(file.path, flush_on_sigterm=False, flush_interval=30.0)
    yield recorder
    set_trace_processors([])
    kantan_llm.tracing.set_trace_processors([])
    recorder.shutdown()


def test_record_traces_records_both_kinds_of_traces_and_replaces_other_processors(file: DatabaseFile) -> None:
    others = Other(), Other()
    set_trace_processors([others[0]])
    kantan_llm.tracing.set_trace_processors([others[1]])
    recorder = record_traces(file.path, flush_on_sigterm=False)
    try:
        with trace("the SDK's"):
            record("one")
        theirs = kantan_llm.tracing.trace("kantan-llm's", metadata={"k": "v"})
        usage = {"input_tokens": 1}
        with theirs, kantan_llm.tracing.generation_span(input="i", output="o", usage=usage):
            pass
        assert recorder.force_flush()
    finally:
        set_trace_processors([])
        kantan_llm.tracing.set_trace_processors([])
        recorder.shutdown()
    assert [other.seen for other in others] == [[], []]
    assert {found.workflow_name for found in file.traces()} == {"the SDK's", "kantan-llm's"}
    (found,) = file.traces(metadata={"k": "v"})
    assert found.metadata == {"k": "v", "usage_total": {"input_tokens": 1}}
    (span,) = file.spans(trace_id=found.trace_id)
    assert (span.input, span.output) == ("i", "o")


def test_without_a_path_the_default_path_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    recorder = record_traces(flush_on_sigterm=False)
    set_trace_processors([])
    kantan_llm.tracing.set_trace_processors([])
    recorder.shutdown()
    assert [found.name for found in folder.iterdir()] == ["traces.sqlite3"]


def test_an_unknown_option_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="max_size"):
        record_traces(tmp_path / "t.db", max_size=1)


def test_if_the_recorder_cannot_be_created_the_processors_stay(tmp_path: Path) -> None:
    other = Other()
    set_trace_processors([other])
    with pytest.raises(TraceDatabaseError):
        record_traces(tmp_path)
    with trace("w"):
        pass
    assert len(other.seen) == 2


def test_it_works_with_other_processors(recorder: SQLiteRecorder, file: DatabaseFile) -> None:
    other = Other()
    add_trace_processor(other)
    record_trace("a")
    assert recorder.force_flush()
    assert len(other.seen) == 4
    assert file.names() == ["a"]


def test_flush_and_shutdown_of_the_sdk_write_everything(
    recorder_threads: Threads, recorded: SQLiteRecorder, file: DatabaseFile, logged: Logged
) -> None:
    with trace("w"):
        record("flushed")
        flush_traces()
        assert file.names() == ["flushed"]
        record("shut down")
        provider: Any = agents.tracing.get_trace_provider()
        provider.shutdown(timeout=SECONDS)
        assert recorder_threads() == []
        assert file.names() == ["flushed", "shut down"]
        record("later")
        provider.shutdown()
    assert file.names() == ["flushed", "shut down", "later"]
    assert logged() == []


def test_with_tracing_switched_off_nothing_is_recorded(recorder: SQLiteRecorder, file: DatabaseFile) -> None:
    agents.set_tracing_disabled(True)
    try:
        record_trace("a")
    finally:
        agents.set_tracing_disabled(False)
    with trace("w", disabled=True):
        record("b")
    assert recorder.force_flush()
    assert file.names() == []
    assert file.traces() == []


def test_traces_and_spans_without_an_export_are_not_recorded(
    recorder: SQLiteRecorder, file: DatabaseFile
) -> None:
    class Nothing:
        trace_id = span_id = "no-op"

        def export(self) -> None:
            return None

    nothing: Any = Nothing()
    recorder.on_trace_start(nothing)
    recorder.on_span_start(nothing)
    recorder.on_span_end(nothing)
    recorder.on_trace_end(nothing)
    assert recorder.force_flush()
    assert (file.traces(), file.spans()) == ([], [])
    assert recorder.stats() == RecorderStats(0, 0, 0, 0, 0.0)


def test_without_errors_nothing_is_logged(
    recorder: SQLiteRecorder, file: DatabaseFile, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * 3))
    for _ in range(3):
        agent.run("hi")
    assert recorder.force_flush()
    recorder.shutdown()
    assert len(file.traces()) == 3
    names = {"kantan_agents", "kantan_agents.tracing", "openai.agents", "asyncio"}
    assert [message.getMessage() for message in caplog.records if message.name in names] == []
