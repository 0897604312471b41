"""When the writer is woken: once for the spans of an interval, and in any case."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from kantan_agents import SQLiteRecorder
from kantan_agents.traces.recorder import writer
from kantan_agents.traces.recorder.waking import Wake
from tests.traces.recorder.database_file import DatabaseFile
from tests.traces.recorder.processes import wait_until
from tests.traces.recorder.spans import record_trace

RecorderAt = Callable[..., SQLiteRecorder]
INTERVAL = 0.4
# More than the writer takes to find spans whose timer does not fire, and less than until it ends.
MUCH_LATER = writer.IDLE_SECONDS / 2


class Value:
    """Something that a context holds."""


held: contextvars.ContextVar[Value] = contextvars.ContextVar("held")


@pytest.fixture
def asleep(recorder_at: RecorderAt, file: DatabaseFile) -> SQLiteRecorder:
    """A recorder whose writer waits for work."""
    recorder = recorder_at(file.path, flush_interval=INTERVAL)
    wait_until(lambda: recorder._queue.waking.sleeping)
    return recorder


@pytest.fixture
def not_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have writers do nothing by themselves while they wait for work."""
    monkeypatch.setattr(writer, "CHECK_SECONDS", 1_000.0)


@pytest.fixture
def woken(asleep: SQLiteRecorder, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times at which the recorder's writer was woken."""
    times: list[float] = []
    wake = Wake.set

    def noting(self: Wake) -> None:
        if self is asleep._queue.waking._wake:
            times.append(time.monotonic())
        wake(self)

    monkeypatch.setattr(Wake, "set", noting)
    return times


@pytest.mark.usefixtures("not_looking")
def test_on_a_loop_the_writer_is_woken_once_when_the_interval_is_over(
    asleep: SQLiteRecorder, file: DatabaseFile, woken: list[float]
) -> None:
    async def main() -> float:
        begun = time.monotonic()
        for name in "abcdef":
            record_trace(name)
            await asyncio.sleep(INTERVAL / 20)
        await asyncio.to_thread(wait_until, lambda: file.count() == 6)
        return begun

    begun = asyncio.run(main())
    assert file.names() == [*"abcdef"]
    # The last is the flush at the end of the loop, if there was anything to flush.
    assert woken[0] - begun >= INTERVAL
    assert len(woken) <= 2


def test_without_a_loop_it_is_woken_at_once(
    asleep: SQLiteRecorder, file: DatabaseFile, woken: list[float]
) -> None:
    begun = time.monotonic()
    record_trace("a", "b")
    assert len(woken) == 1
    assert woken[0] - begun < INTERVAL
    wait_until(lambda: file.names() == ["a", "b"])


def test_while_the_loop_is_blocked_spans_are_written_all_the_same(
    asleep: SQLiteRecorder, file: DatabaseFile
) -> None:
    released = threading.Event()

    async def main() -> bool:
        record_trace("a")
        return released.wait(MUCH_LATER)

    found: list[list[str]] = []

    def look() -> None:
        wait_until(lambda: file.count() == 1, MUCH_LATER)
        found.append(file.names())
        released.set()

    looking = threading.Thread(target=look)
    looking.start()
    assert asyncio.run(main())
    looking.join()
    assert found == [["a"]]


def test_spans_of_a_loop_that_was_stopped_are_written(asleep: SQLiteRecorder, file: DatabaseFile) -> None:
    async def main() -> None:
        record_trace("a")

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    wait_until(lambda: file.names() == ["a"], MUCH_LATER)
    loop.close()


@pytest.mark.usefixtures("not_looking")
def test_a_timer_of_spans_that_were_flushed_wakes_nobody(
    asleep: SQLiteRecorder, file: DatabaseFile, woken: list[float]
) -> None:
    async def main() -> None:
        record_trace("a")
        await asyncio.sleep(0.01)
        assert await asleep.force_flush_async()
        before = len(woken)
        await asyncio.sleep(2 * INTERVAL)
        assert len(woken) == before

    asyncio.run(main())
    assert file.names() == ["a"]


def test_flushes_leave_no_timers_of_a_long_interval(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    recorder = recorder_at(file.path, flush_interval=3600)

    async def main() -> int:
        for _ in range(20):
            await asyncio.to_thread(wait_until, lambda: recorder._queue.waking.sleeping)
            record_trace("a")
            await asyncio.sleep(0)
            assert await recorder.force_flush_async()
        return len(asyncio.get_running_loop()._scheduled)

    assert asyncio.run(main()) == 0
    assert file.count() == 20


def test_spans_that_come_just_before_the_thread_would_end_keep_the_file_open(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "IDLE_SECONDS", 1.0)
    recorder = recorder_at(file.path, flush_interval=0.8)
    closed: list[int] = []
    close = recorder._writer.batches.close

    def noting() -> None:
        closed.append(1)
        close()

    monkeypatch.setattr(recorder._writer.batches, "close", noting)
    wait_until(lambda: recorder._queue.waking.sleeping)

    async def main() -> list[int]:
        await asyncio.sleep(0.5)
        record_trace("a")
        await asyncio.to_thread(wait_until, lambda: file.count() == 1)
        return [*closed]

    assert asyncio.run(main()) == []


@pytest.mark.usefixtures("not_looking")
def test_the_timer_keeps_nothing_of_the_run_in_memory(
    asleep: SQLiteRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> weakref.ref[Value]:
        value = Value()
        held.set(value)
        record_trace("a")
        return weakref.ref(value)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        with monkeypatch.context() as patched:
            patched.setattr(loop, "time", lambda: now)  # the timer does not fire, however long this takes
            value = await asyncio.create_task(run())
            for _ in range(3):  # asyncio itself keeps the context for a moment
                await asyncio.sleep(0)
            gc.collect()
            assert asleep.stats().queued == 1
            assert value() is None

    asyncio.run(main())
