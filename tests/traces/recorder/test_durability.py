"""Every span that has ended is in the file, however the process, the event loop or the worker ends.

A recorder from ``lazy()`` writes only after 30 seconds, so everything in the file was written because of the
end.
"""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import custom_span, trace

from kantan_agents import SQLiteRecorder
from tests.traces.recorder.database_file import DatabaseFile
from tests.traces.recorder.processes import Process, Start, wait_until

# Ends of a process

# Python's own handler, which a shell's background job does not have.
INTERRUPT = "signal.signal(signal.SIGINT, signal.default_int_handler); signal.raise_signal(signal.SIGINT)"


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("", 0),
        ("pass", 0),
        ("sys.exit(3)", 3),
        ("raise KeyError('mine')", 1),
        ("set_trace_processors([])", 0),
        (INTERRUPT, -signal.SIGINT),
        ("threading.Thread(target=record, args=['c'], kwargs={'parent': w}).start()", 0),
        ("import atexit; atexit.register(record, 'c', parent=w)", 0),
    ],
)
def test_the_end_of_a_process_writes_everything_without_a_flush(
    start: Start, file: DatabaseFile, end: str, status: int
) -> None:
    body = f"lazy()\nwith trace('w') as w:\n    record('a', 'b')\n{end}\n"
    script = start(body, file.path, thorough=not end)
    assert script.wait() == status
    assert file.names() == (["a", "b", "c"] if "'c'" in end else ["a", "b"])
    assert [found.workflow_name for found in file.traces()] == ["w"]


def test_spans_that_end_after_the_recorders_exit_function_are_written(
    start: Start, file: DatabaseFile
) -> None:
    start(
        """
        import atexit

        def late():
            with trace("late"):
                record("late")
                wait_until(lambda: recorder.stats().queued == 0)
                record("later")

        atexit.register(late)  # before the recorder's exit function, so called after it
        recorder = lazy()
        with trace("w"):
            record("early")
        """,
        file.path,
        wait=True,
    )
    assert file.names() == ["early", "late", "later"]


def test_the_end_leaves_no_log_file_and_no_error_output(start: Start, file: DatabaseFile) -> None:
    start(
        "recorder = record_traces(path)\nwith trace('w'): record('a')\nrecorder.shutdown()",
        file.path,
        wait=True,
    )
    assert [found.name for found in file.path.parent.glob("traces*")] == ["traces.sqlite3"]


# SIGTERM


def test_sigterm_without_a_handler_writes_everything_and_ends_the_process(
    start: Start, file: DatabaseFile
) -> None:
    script = start("lazy()\nwith trace('w'): record('a', 'b')\nsay('ready')\nuntil_signal()", file.path)
    assert script.until("ready").send(signal.SIGTERM).wait() == -signal.SIGTERM
    assert file.names() == ["a", "b"]
    assert script.err == ""


def test_sigterm_in_the_middle_of_recording_writes_everything(start: Start, folder: Path) -> None:
    """The handler interrupts the recorder anywhere, also while it starts and stops."""
    body = """
        recorder = record_traces(path, flush_interval=0.001)
        with trace("w"):
            for number in range(1_000_000):
                record(number)
                say(number)
                if number % 7 == 0:
                    recorder.shutdown()
        """
    runs = [(start(body, folder / f"{number}.db"), folder / f"{number}.db") for number in range(5)]
    for number, (script, path) in enumerate(runs):
        script.until(str(3 + 17 * number)).send(signal.SIGTERM)
        assert script.wait() == -signal.SIGTERM, script.err
        said = script.out.split()
        names = DatabaseFile(path).names()
        assert names[: len(said)] == said
        assert len(names) <= len(said) + 1


def test_sigterm_during_stats_writes_everything(start: Start, folder: Path) -> None:
    body = """
        # Coverage has its own lock, for which the handler would wait.
        sys.settrace(None)
        threading.settrace(None)
        recorder = lazy()
        with trace("w"):
            record("a", "b")
        say("ready")
        while True:
            recorder.stats()
        """
    for number in range(6):
        path = folder / f"{number}.db"
        script = start(body, path)
        assert script.until("ready").send(signal.SIGTERM).wait() == -signal.SIGTERM
        assert DatabaseFile(path).names() == ["a", "b"]


def test_a_user_defined_handler_is_called_and_then_everything_is_written(
    start: Start, file: DatabaseFile
) -> None:
    script = start(
        """
        import contextlib, sqlite3

        def names():
            with contextlib.closing(sqlite3.connect(path)) as connection:
                rows = connection.execute("SELECT name FROM spans ORDER BY rowid")
                return [name for (name,) in rows]

        def mine(number, frame):
            record("in the handler", parent=opened)
            say(f"handled {number} {frame is not None}")

        signal.signal(signal.SIGTERM, mine)
        lazy()
        with trace("w") as opened:
            record("before")
            signal.raise_signal(signal.SIGTERM)
            say(names())
            record("after")
        say(names())  # shutting down, so the end of a trace waits until the trace is written
        """,
        file.path,
        wait=True,
    )
    assert script.out.splitlines() == [
        f"handled {int(signal.SIGTERM)} True",
        "['before', 'in the handler']",
        "['before', 'in the handler', 'after']",
    ]


def test_a_service_that_handles_sigterm_on_its_loop_loses_nothing(start: Start, file: DatabaseFile) -> None:
    script = start(
        """
        async def main():
            stop = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
            lazy()
            with trace("w"):
                record("before")
                say("ready")
                await stop.wait()
                record("after")

        asyncio.run(main())
        names = __import__("sqlite3").connect(path).execute("SELECT name FROM spans ORDER BY rowid")
        say([name for (name,) in names])
        """,
        file.path,
    )
    assert script.until("ready").send(signal.SIGTERM).wait() == 0, script.err
    assert script.out.splitlines()[-1] == "['before', 'after']"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_user_defined_handler_stays_in_place(start: Start, file: DatabaseFile, when: str) -> None:
    mine = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))"
    first, second = (mine, "lazy()") if when == "before" else ("lazy()", mine)
    script = start(
        f"{first}\n{second}\nwith trace('w'): record('a')\nsay('ready')\nuntil_signal()", file.path
    )
    assert script.until("ready").send(signal.SIGTERM).wait() == 7
    assert file.names() == ["a"]


@pytest.mark.parametrize(
    "how",
    [
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); record_traces(path)",
        "record_traces(path, flush_on_sigterm=False)",
        "t = threading.Thread(target=record_traces, args=[path]); t.start(); t.join()",
    ],
)
def test_the_signal_is_handled_only_if_requested_and_possible(
    start: Start, file: DatabaseFile, how: str
) -> None:
    expected = "signal.SIG_IGN" if "SIG_IGN" in how else "signal.SIG_DFL"
    start(f"{how}\nassert signal.getsignal(signal.SIGTERM) is {expected}", file.path, wait=True)


# A server

_SERVED = """
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from prelude import *


async def answer(request):
    with trace("request"):
        record(request.query_params["n"])
    return PlainTextResponse("done")


@asynccontextmanager
async def lifespan(app):
    if sys.argv[2] == "lifespan":
        lazy()
    say("started")
    yield
    with trace("lifespan"):
        record("last")


if sys.argv[2] == "module":
    lazy()
app = Starlette(routes=[Route("/", answer)], lifespan=lifespan)
"""

_SERVE = """
import sys
import warnings

import uvicorn

warnings.simplefilter("default")  # warnings of the server are not tested here
if __name__ == "__main__":
    options = {"workers": int(sys.argv[3]), "uds": sys.argv[4], "log_level": "error", "ws": "none"}
    uvicorn.run("served:app", **options)
"""


def ask(address: Path, number: int) -> None:
    """Send a request to the server as soon as it listens."""

    def answer() -> bytes:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(address))
            except OSError:
                return b""
            client.sendall(b"GET /?n=%d HTTP/1.0\r\n\r\n" % number)
            return b"".join(iter(lambda: client.recv(1024), b""))

    wait_until(lambda: answer().endswith(b"done"))


@pytest.mark.parametrize(("made", "workers"), [("module", 1), ("lifespan", 1), ("module", 2)])
def test_a_server_that_receives_sigterm_loses_nothing(
    start: Start, file: DatabaseFile, folder: Path, made: str, workers: int
) -> None:
    """At the end, the server or each worker sends itself the signal again, with the default action."""
    (folder / "served.py").write_text(_SERVED)
    server = start(_SERVE, file.path, made, workers, folder / "socket", bare=True)
    wait_until(lambda: server.out.count("started") == workers, lambda: server.err)
    for number in range(5):
        ask(folder / "socket", number)
    assert server.send(signal.SIGTERM).wait() in (0, -signal.SIGTERM), server.err
    assert Counter(file.names()) == Counter(["0", "1", "2", "3", "4"] + ["last"] * workers)


# The end of a loop


def names_for_kantan_llm(file: DatabaseFile) -> list[str | None]:
    return [span.name for span in file.spans()]


def lazy(recorder_at: Callable[..., SQLiteRecorder], file: DatabaseFile) -> SQLiteRecorder:
    recorder = recorder_at(file.path, flush_interval=30.0)
    wait_until(lambda: recorder._queue.waking.sleeping)
    recorder._queue.waking.urgent = False  # left over from opening the file
    return recorder


async def run_named(name: str) -> None:
    with trace(name):
        await asyncio.sleep(0)
        with custom_span(name):
            await asyncio.sleep(0)


def test_when_a_loop_has_ended_its_spans_are_written(recorder_at: Any, file: DatabaseFile) -> None:
    lazy(recorder_at, file)
    for number in range(3):
        asyncio.run(run_named(str(number)))
        assert names_for_kantan_llm(file) == [str(n) for n in range(number + 1)]


def test_when_a_loop_inside_an_open_trace_has_ended_its_spans_are_written(
    recorder_at: Any, file: DatabaseFile
) -> None:
    lazy(recorder_at, file)

    async def main() -> None:
        with custom_span("inside"):
            await asyncio.sleep(0)

    with trace("around"):
        asyncio.run(main())
        assert names_for_kantan_llm(file) == ["inside"]


def test_a_loop_that_fails_or_is_cancelled_loses_nothing(recorder_at: Any, file: DatabaseFile) -> None:
    lazy(recorder_at, file)

    async def fail() -> None:
        await run_named("failed")
        raise KeyError

    async def be_cancelled() -> None:
        with trace("w"), custom_span("cancelled"):
            await asyncio.sleep(3600)

    async def leave() -> None:
        task = asyncio.create_task(be_cancelled())
        await asyncio.sleep(0)
        assert not task.done()

    with pytest.raises(KeyError):
        asyncio.run(fail())
    asyncio.run(leave())
    assert names_for_kantan_llm(file) == ["failed", "cancelled"]


def test_each_loop_of_nested_threads_is_flushed_at_its_end(recorder_at: Any, file: DatabaseFile) -> None:
    lazy(recorder_at, file)
    seen = []

    def nested(depth: int) -> None:
        async def main() -> None:
            await run_named(f"down {depth}")
            if depth:
                await asyncio.to_thread(nested, depth - 1)
            await run_named(f"up {depth}")

        asyncio.run(main())
        seen.append(names_for_kantan_llm(file)[-1])

    nested(3)
    assert seen == ["up 0", "up 1", "up 2", "up 3"]
    assert len(file.spans()) == 8


def test_concurrent_loops_in_many_threads_lose_nothing(recorder_at: Any, file: DatabaseFile) -> None:
    lazy(recorder_at, file)
    missing = []

    def work(name: str) -> None:
        asyncio.run(run_named(name))
        if name not in names_for_kantan_llm(file):
            missing.append(name)

    threads = [threading.Thread(target=work, args=[str(number)]) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missing == []
    assert sorted(file.names(), key=int) == [str(number) for number in range(12)]


def test_traces_from_the_shutdown_of_a_loop_are_recorded(
    recorder_at: Any, file: DatabaseFile, logged: Any
) -> None:
    recorder = lazy(recorder_at, file)

    async def numbers() -> Any:
        try:
            yield 1
        finally:
            await run_named("cleaned up")

    async def main() -> None:
        generator = numbers()
        await anext(generator)
        generators.append(generator)

    generators: list[Any] = []
    asyncio.run(main())
    assert recorder.force_flush()
    assert file.names() == ["cleaned up"]
    assert logged() == []


def test_a_loop_closed_without_shutdown_loses_nothing(recorder_at: Any, file: DatabaseFile) -> None:
    recorder = lazy(recorder_at, file)
    for number in range(3):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(run_named(str(number)))
        loop.close()
    assert recorder.force_flush()
    assert file.names() == ["0", "1", "2"]


# Another program in place of the process


def test_a_flush_before_exec_writes_everything(start: Start, file: DatabaseFile) -> None:
    start(
        """
        recorder = record_traces(path)
        with trace("w"):
            record(*map(str, range(300)))
        assert recorder.force_flush()
        os.execv(sys.executable, [sys.executable, "-c", "pass"])
        """,
        file.path,
        wait=True,
    )
    assert file.names() == [str(number) for number in range(300)]


# Forks and workers


def test_spans_waiting_at_a_fork_are_written_once_by_the_parent(start: Start, file: DatabaseFile) -> None:
    start(
        """
        recorder = lazy()
        with trace("w", metadata={"k": "v"}):
            record(*(f"parent {number}" for number in range(2_500)))
            for number in range(3):
                pid = os.fork()
                if pid == 0:
                    record(f"child {number}")
                    stats = recorder.stats()
                    assert stats.written + stats.queued == 1, stats
                    os._exit(0 if recorder.force_flush(60) else 1)
                assert os.waitpid(pid, 0)[1] == 0
            record("parent, last")
        """,
        file.path,
        wait=True,
    )
    assert Counter(file.names()) == Counter(
        [f"parent {n}" for n in range(2_500)] + [f"child {n}" for n in range(3)] + ["parent, last"]
    )
    assert file.traces()[0].metadata == {"k": "v"}
    numbers = [number for (number,) in file.rows("SELECT ingest_seq FROM spans ORDER BY ingest_seq")]
    assert numbers == list(range(1, 2_505))


def test_a_fork_while_other_threads_record_loses_nothing(start: Start, file: DatabaseFile) -> None:
    start(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # about forks with threads, which are tested here

        recorder = record_traces(path, flush_interval=0.01)
        ended = threading.Event()
        counts = [0] * 4

        def work(number, parent):
            while not ended.is_set():
                record("parent", parent=parent)
                counts[number] += 1
                time.sleep(0.0005)

        with trace("w") as w:
            threads = [threading.Thread(target=work, args=[number, w]) for number in range(4)]
            for thread in threads:
                thread.start()
            for _ in range(10):
                pid = os.fork()
                if pid == 0:
                    record("child", parent=w)
                    os._exit(0 if recorder.force_flush(60) else 1)
                assert os.waitpid(pid, 0)[1] == 0
            ended.set()
            for thread in threads:
                thread.join()
        assert recorder.force_flush()
        stats = recorder.stats()
        assert (stats.written, stats.dropped, stats.failed) == (sum(counts), 0, 0), (stats, counts)
        say(sum(counts))
        """,
        file.path,
        wait=True,
    )
    assert Counter(file.names()) == {"child": 10, "parent": int(start.started[0].out)}


def test_a_trace_from_before_a_fork_keeps_its_metadata_if_the_child_writes_first(
    start: Start, file: DatabaseFile
) -> None:
    start("record_traces(path)", file.path, wait=True)
    locker = start(
        """
        import sqlite3

        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        say("locked")
        until_signal()
        """,
        file.path,
    ).until("locked")
    script = start(
        """
        recorder = record_traces(path)
        with trace("w", metadata={"k": "v"}):
            record("parent")
            pid = os.fork()  # while the trace is still queued
            if pid == 0:
                record("child")
                say("forked")
                os._exit(0 if recorder.force_flush(60) else 1)
            os.kill(os.getpid(), signal.SIGSTOP)
            assert os.waitpid(pid, 0)[1] == 0
        """,
        file.path,
    ).until("forked")
    locker.send(signal.SIGKILL)
    wait_until(lambda: file.names() == ["child"])
    assert script.send(signal.SIGCONT).wait() == 0, script.err
    assert file.names() == ["child", "parent"]
    (found,) = file.traces()
    assert (found.workflow_name, found.metadata) == ("w", {"k": "v"})


_WORK = """
import multiprocessing
import warnings

warnings.simplefilter("ignore", DeprecationWarning)  # about forks, on newer Pythons


def work(number):
    if multiprocessing.get_start_method() != "fork" and number >= 0:
        lazy()
    with trace("work"):
        record(f"worker {number}")
"""


def test_forked_workers_that_call_no_exit_functions_lose_nothing(start: Start, file: DatabaseFile) -> None:
    start(
        f"""
        {_indented(_WORK)}
        multiprocessing.set_start_method("fork")
        lazy()
        with trace("w"):
            record("parent")
        workers = [multiprocessing.Process(target=work, args=[number]) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            assert worker.exitcode == 0
        with multiprocessing.Pool(2) as pool:  # ends its workers by SIGTERM
            pool.map(work, range(4, 30))
        """,
        file.path,
        wait=True,
    )
    assert sorted(file.names()) == sorted(["parent", *(f"worker {number}" for number in range(30))])


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_new_workers_that_call_no_exit_functions_lose_nothing(
    start: Start, file: DatabaseFile, method: str
) -> None:
    start(
        f"""
        {_indented(_WORK)}
        if __name__ == "__main__":
            multiprocessing.set_start_method({method!r})
            worker = multiprocessing.Process(target=work, args=[0])
            worker.start()
            worker.join()
            assert worker.exitcode == 0
        """,
        file.path,
        wait=True,
    )
    assert file.names() == ["worker 0"]


# Many processes at once, and SIGKILL


def test_concurrent_threads_of_several_processes_lose_nothing(start: Start, file: DatabaseFile) -> None:
    scripts = [
        start(
            """
            recorder = record_traces(path, flush_interval=0.02)
            shared = trace("shared", trace_id="trace_shared")
            shared.start()

            def work(number):
                with trace(f"{sys.argv[2]} {number}"):
                    for n in range(50):
                        record(f"{sys.argv[2]} {number} {n}")
                        record(f"{sys.argv[2]} {number} {n}", parent=shared)

            threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            shared.finish()
            assert recorder.force_flush(60)
            stats = recorder.stats()
            assert (stats.written, stats.queued, stats.dropped, stats.failed) == (800, 0, 0, 0), stats
            """,
            file.path,
            number,
        )
        for number in range(4)
    ]
    for script in scripts:
        assert (script.wait(), script.err) == (0, "")
    wanted = [f"{p} {t} {n}" for p in range(4) for t in range(8) for n in range(50)]
    assert Counter(file.names()) == Counter(wanted * 2)
    assert len(file.traces()) == 33
    for count, last, least in file.rows(
        "SELECT COUNT(DISTINCT ingest_seq), MAX(ingest_seq), MIN(ingest_seq) FROM spans GROUP BY trace_id"
    ):
        assert (last, least) == (count, 1)
    assert file.is_sound()


LOST_SECONDS = 0.5
INTERVAL = 0.2


def test_after_sigkill_the_file_is_intact_and_at_most_half_a_second_is_missing(
    start: Start, folder: Path
) -> None:
    # A control thread commits a row as often as the recorder writes. Its delays show how late this machine
    # lets a thread write; the recorder may be as late.
    body = f"""
        import sqlite3

        def commit():
            say(f"committed {{time.monotonic()}}")
            connection = sqlite3.connect(path + ".control", isolation_level=None)
            connection.execute("CREATE TABLE t (at)")
            while True:
                connection.execute("INSERT INTO t VALUES (?)", [time.monotonic()])
                say(f"committed {{time.monotonic()}}")
                time.sleep({INTERVAL})

        recorder = record_traces(path, flush_interval={INTERVAL})
        threading.Thread(target=commit, daemon=True).start()
        with trace("w"):
            for number in range(1_000_000):
                record(number)
                say(f"{{number}} {{time.monotonic()}}")
                time.sleep(0.0005)
        """
    checked = 0
    for each in range(5):
        scripts = [
            (start(body, folder / f"{each} {number}.db"), folder / f"{each} {number}.db")
            for number in range(4)
        ]
        for script, path in scripts:
            lasting = random.uniform(1.0, 1.6)
            wait_until(lambda s=script, seconds=lasting: _duration(s) > seconds, lambda s=script: s.err)
            wait_until(lambda s=script: s.out.count("committed") > 1, lambda s=script: s.err)
            assert (script.send(signal.SIGKILL).wait(), script.err) == (-signal.SIGKILL, "")
            ended = _ended(script)
            died = ended[-1][1]
            file = DatabaseFile(path)
            assert file.is_sound()
            names = file.names()
            # The file contains the beginning, without gaps.
            assert names == [name for name, _ in ended][: len(names)] or names == _and_one_more(ended)
            lost = LOST_SECONDS + 2 * _longest_delay(script, died)
            checked += any(at < died - lost for _, at in ended)
            assert [name for name, at in ended[len(names) :] if at < died - lost] == []
    assert checked > 0


def _longest_delay(script: Process, died: float) -> float:
    """Return the longest delay of the control thread: until its first commit, or between two commits."""
    committed = [float(at) for word, at in _words(script) if word == "committed"]
    between = [after - before for before, after in zip(committed, [*committed[1:], died], strict=True)]
    return max(0.0, max(between) - INTERVAL)


def _ended(script: Process) -> list[tuple[str, float]]:
    """Return names and times of the spans that have ended according to the output."""
    return [(name, float(at)) for name, at in _words(script) if name != "committed"]


def _words(script: Process) -> list[list[str]]:
    return [line.split() for line in script.out.splitlines(keepends=True) if line.endswith("\n")]


def _duration(script: Process) -> float:
    ended = _ended(script)
    return ended[-1][1] - ended[0][1] if ended else 0.0


def _and_one_more(ended: list[tuple[str, float]]) -> list[str]:
    """Return the names, and that of a span that was written before its end was printed."""
    names = [name for name, _ in ended]
    return [*names, str(len(names))]


def _indented(body: str) -> str:
    return body.strip().replace("\n", "\n        ")
