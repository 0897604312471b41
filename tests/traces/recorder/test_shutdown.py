"""The end of a process: one bound for all that waits, no wait on an event loop, and no wait inside a lock."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents import custom_span, set_trace_processors, trace
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import SQLiteRecorder
from kantan_agents.traces import registry
from kantan_agents.traces.recorder import bound
from tests.traces.recorder.database_file import DatabaseFile
from tests.traces.recorder.processes import SECONDS, Start, wait_until
from tests.traces.recorder.test_durability import _SERVE, _SERVED, ask

NAMES = [str(number) for number in range(10)]

# The file is locked by another connection until `unlock()` is called.
_LOCKED = """
import sqlite3
from kantan_agents.traces.recorder import bound

recorder = record_traces(path)
recorder.force_flush()
lock = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
lock.execute("BEGIN IMMEDIATE")
"""


def test_while_the_file_is_locked_the_traces_that_end_after_a_sigterm_do_not_block_the_loop(
    start: Start, file: DatabaseFile
) -> None:
    """A wait of the loop would last an hour here, because only the loop itself releases the lock."""
    script = start(
        _LOCKED
        + """
bound.END_SECONDS = 3600.0

async def run(number, stop):
    with trace("w"):
        await stop.wait()
        record(number)

async def main():
    stop = asyncio.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    sys.modules["kantan_agents.traces.recorder.sigterm"].flush_on_sigterm()
    runs = [asyncio.create_task(run(number, stop)) for number in range(10)]
    say("ready")
    while not stop.is_set():
        await asyncio.sleep(0.001)
    await asyncio.gather(*runs)
    await asyncio.sleep(0.3)  # the recorder tries in vain meanwhile
    say(recorder.stats().queued)
    lock.close()

asyncio.run(main())
""",
        file.path,
    )
    assert script.until("ready").send(signal.SIGTERM).wait() == 0, script.err
    assert script.out.splitlines() == ["ready", "10"]
    assert sorted(file.names()) == NAMES


def test_while_the_file_is_locked_all_ends_of_a_process_share_one_bound(
    start: Start, file: DatabaseFile
) -> None:
    script = start(
        _LOCKED
        + """
import atexit
from agents.tracing.setup import _shutdown_global_trace_provider
from kantan_agents.traces.recorder.waking import FlushMarker

bound.END_SECONDS = 0.5
waits = []
wait = FlushMarker.wait

def counted(self, seconds):
    waits.append(seconds)
    return wait(self, seconds)

FlushMarker.wait = counted
atexit._clear()
atexit.register(lambda: say(sum(waits)))  # called after those of the recorder and of the SDK
atexit.register(sys.modules["kantan_agents.traces.recorder.lifecycle"]._at_exit)
atexit.register(_shutdown_global_trace_provider)
signal.signal(signal.SIGTERM, lambda *_: None)
sys.modules["kantan_agents.traces.recorder.sigterm"].flush_on_sigterm()
record("before")
signal.raise_signal(signal.SIGTERM)
for number in range(10):
    with trace("w"):
        record(number)

async def main():
    with trace("w"):
        record("in a loop")

asyncio.run(main())
say(len(waits))
""",
        file.path,
    )
    assert script.wait() == 0, script.err
    count, seconds = script.out.splitlines()
    assert int(count) >= 10
    assert float(seconds) < 1.0


def test_a_sigterm_inside_what_logs_ends_the_process(start: Start, file: DatabaseFile) -> None:
    script = start(
        _LOCKED
        + """
import logging
bound.END_SECONDS = 0.5
inside = threading.Lock()

class Blocking(logging.Handler):
    def emit(self, record):
        with inside:
            pass

logging.getLogger().addHandler(Blocking())
with trace("w"):
    record("waits")
with inside:
    signal.raise_signal(signal.SIGTERM)
""",
        file.path,
    )
    assert script.wait() == -signal.SIGTERM, script.err


def test_an_error_in_what_logs_does_not_reach_the_end_of_the_process(
    start: Start, file: DatabaseFile
) -> None:
    script = start(
        _LOCKED
        + """
import logging
bound.END_SECONDS = 0.5

class Failing(logging.Handler):
    def handle(self, record):
        say("asked to log")
        raise RuntimeError("out of order")

logging.getLogger().addHandler(Failing())
with trace("w"):
    record("waits")
""",
        file.path,
    )
    assert script.wait() == 0
    assert "asked to log" in script.out
    assert "out of order" not in script.err


@given(st.lists(st.tuples(st.floats(0, 3), st.booleans()), min_size=1, max_size=30))
def test_the_waits_of_a_process_that_ends_add_up_to_one_bound_while_the_file_fails(
    steps: list[tuple[float, bool]],
) -> None:
    class Failing:
        is_failing = True

    clock = [1_000.0]
    waited = 0.0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bound.time, "monotonic", lambda: clock[0])
        patched.setattr(registry, "recorders", lambda: [Failing()])
        bound.renew()
        for pause, waits in steps:
            clock[0] += pause
            seconds = bound.remaining(is_ending=True)
            if waits:
                waited += seconds
                clock[0] += seconds
    bound.renew()
    assert waited <= bound.END_SECONDS + 1e-6


def test_a_default_action_that_is_restored_after_a_sigterm_ends_the_process_after_writing(
    start: Start, file: DatabaseFile
) -> None:
    script = start(
        """
        signal.signal(signal.SIGTERM, lambda *_: None)
        lazy()
        with trace("w"):
            record("before")
            signal.raise_signal(signal.SIGTERM)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            record("after")
            signal.raise_signal(signal.SIGTERM)
        say("not reached")
        """,
        file.path,
    )
    assert script.wait() == -signal.SIGTERM
    assert (script.out, file.names()) == ("", ["before", "after"])


def test_before_a_sigterm_and_for_other_signals_the_default_action_is_set_as_usual(
    start: Start, file: DatabaseFile
) -> None:
    start(
        """
        signal.signal(signal.SIGTERM, lambda *_: None)
        lazy()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        signal.signal(signal.SIGTERM, lambda *_: None)
        record_traces(path)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
        """,
        file.path,
        wait=True,
    )


_WITH_HANDLER = """
signal.signal(signal.SIGTERM, lambda *_: None)
standard = signal.signal
recorder = lazy()
signal.raise_signal(signal.SIGTERM)
assert signal.signal is not standard
"""


@pytest.mark.parametrize(
    "then",
    [
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)",  # as a server does, once
        """
sys.modules["kantan_agents.traces.recorder.sigterm"].SHUTDOWN_SECONDS = 0.0
signal.raise_signal(signal.SIGTERM)
with trace("the process goes on"):
    pass
""",
        """
child = os.fork()
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
else:
    os._exit(signal.signal is not standard)
""",
    ],
    ids=["the default action is set", "the process goes on", "the process forks"],
)
def test_the_function_that_sets_handlers_is_replaced_no_longer_than_needed(
    start: Start, file: DatabaseFile, then: str
) -> None:
    start(_WITH_HANDLER + then + "\nassert signal.signal is standard", file.path, wait=True)


def test_a_wrapper_that_another_library_puts_around_it_stays_and_works(
    start: Start, file: DatabaseFile
) -> None:
    start(
        _WITH_HANDLER
        + """
within, calls = signal.signal, []

def wrapper(number, handler):
    calls.append(number)
    return within(number, handler)

signal.signal = wrapper
signal.signal(signal.SIGTERM, signal.SIG_DFL)
assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
assert signal.signal is wrapper
signal.signal(signal.SIGTERM, signal.SIG_DFL)
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
assert calls == [signal.SIGTERM] * 2
""",
        file.path,
        wait=True,
    )


_PREFORK = """
# A worker of a pre-fork server, which resets the signals and then runs a server such as uvicorn.
SIGNALS = (signal.SIGINT, signal.SIGTERM)  # in the order of gunicorn

def answer():
    with trace("w"):
        record("answered")

def work(number, made):
    standard = signal.signal
    for each in SIGNALS:
        signal.signal(each, signal.SIG_DFL)
    before = {each: signal.signal(each, serving) for each in SIGNALS}
    if made == "in the server":
        lazy()
    if made == "before the fork, used by a thread":
        thread = threading.Thread(target=answer)
        thread.start()
        thread.join()
    else:
        answer()
    signal.raise_signal(number)
    for each, handler in before.items():
        signal.signal(each, handler)
    signal.raise_signal(number)
    say("not reached")

def serving(*_):
    pass

number, made = signal.Signals(int(sys.argv[2])), sys.argv[3]
if made != "in the server":
    lazy()
for each in SIGNALS:
    signal.signal(each, lambda *_: None)
child = os.fork()
if not child:
    work(number, made)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert status == -number, status
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("made", ["before the fork", "before the fork, used by a thread", "in the server"])
def test_a_worker_that_resets_its_signals_after_the_fork_writes_everything(
    start: Start, file: DatabaseFile, number: signal.Signals, made: str
) -> None:
    start(_PREFORK, file.path, int(number), made, wait=True)
    assert file.names() == ["answered"]


def test_in_a_forked_child_the_function_that_sets_handlers_is_replaced_until_it_is_used_once(
    start: Start, file: DatabaseFile
) -> None:
    start(
        """
        standard = signal.signal
        lazy()
        child = os.fork()
        if child:
            assert signal.signal is standard
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        else:
            assert signal.signal is not standard
            signal.signal(signal.SIGUSR1, signal.SIG_DFL)
            assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
            assert signal.signal is standard
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        """,
        file.path,
        wait=True,
    )


def test_a_child_of_a_process_whose_recorder_leaves_the_signal_alone_does_so_as_well(
    start: Start, file: DatabaseFile
) -> None:
    start(
        """
        standard = signal.signal
        recorder = record_traces(path, flush_on_sigterm=False)
        child = os.fork()
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        else:
            assert signal.signal is standard
        """,
        file.path,
        wait=True,
    )


def test_ctrl_c_raises_keyboard_interrupt_as_without_a_recorder(start: Start, file: DatabaseFile) -> None:
    start(
        """
        lazy()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

        async def main():
            handler = signal.getsignal(signal.SIGINT)
            record_traces(path)
            assert signal.getsignal(signal.SIGINT) is handler

        asyncio.run(main())
        try:
            with trace("w"):
                record("a")
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        """,
        file.path,
        wait=True,
    )
    assert file.names() == ["a"]


_SAYING = """

record_silently = record


def record(name):
    record_silently(name)
    say(name)
"""


def test_a_server_that_receives_sigterm_while_the_file_is_locked_waits_for_it_once(
    start: Start, file: DatabaseFile, folder: Path
) -> None:
    (folder / "served.py").write_text(_SERVED + _SAYING)
    server = start(_SERVE, file.path, "lifespan", 1, folder / "socket", bare=True)
    wait_until(lambda: "started" in server.out, lambda: server.err)
    with closing(sqlite3.connect(file.path, isolation_level=None, timeout=SECONDS)) as lock:
        lock.execute("BEGIN IMMEDIATE")
        for number in range(5):
            ask(folder / "socket", number)
        server.send(signal.SIGTERM).until("last")
    assert server.wait() == -signal.SIGTERM, server.err
    assert sorted(file.names()) == ["0", "1", "2", "3", "4", "last"]


def test_a_recorder_whose_file_is_free_is_written_although_that_of_another_is_locked(
    recorder_at: Callable[..., SQLiteRecorder], folder: Path
) -> None:
    recorders = [recorder_at(folder / f"{number}.db", flush_interval=30.0) for number in range(4)]
    set_trace_processors(recorders)
    for recorder in recorders:
        assert recorder.force_flush(SECONDS)
        recorder._queue.waking.urgent = False
    with closing(sqlite3.connect(recorders[1].path, isolation_level=None)) as lock:
        lock.execute("BEGIN IMMEDIATE")
        with trace("w"), custom_span("a"):
            pass
        assert not registry.flush_all(1.0)
    for recorder in recorders[:1] + recorders[2:]:
        assert DatabaseFile(recorder.path).names() == ["a"]


# Signals and destructors inside the recorder


@pytest.mark.parametrize("moment", ["__init__", "start"])
def test_a_sigterm_while_the_recorder_starts_its_thread_loses_nothing(
    start: Start, file: DatabaseFile, moment: str
) -> None:
    script = start(
        f"""
        recorder = record_traces(path)
        recorder.shutdown()

        class Thread(threading.Thread):
            def {moment}(self, *args, **options):
                signal.raise_signal(signal.SIGTERM)
                super().{moment}(*args, **options)

        threading.Thread = Thread
        with trace("w"):
            record("a")
        say("not reached")
        """,
        file.path,
    )
    assert script.wait() == -signal.SIGTERM, script.err
    assert script.out == ""
    # The signal arrives when the trace begins, and ends the process as soon as the thread has started.
    assert len(file.traces()) == 1


def test_a_sigterm_inside_a_lock_of_the_recorder_loses_nothing(start: Start, file: DatabaseFile) -> None:
    """The recorder's thread needs the lock to write, so the process ends as soon as it is released."""
    script = start(
        """
        recorder = lazy()
        with trace("w"):
            record("a", "b")
        with recorder._queue.modifying():
            signal.raise_signal(signal.SIGTERM)
            say("inside")
        say("not reached")
        """,
        file.path,
    )
    assert script.wait() == -signal.SIGTERM, script.err
    assert script.out == "inside\n"
    assert file.names() == ["a", "b"]


def test_a_destructor_that_holds_a_lock_of_threading_does_not_wait_for_the_thread_start(
    start: Start, file: DatabaseFile
) -> None:
    """The garbage collector may run a destructor while ``threading`` registers or removes a thread."""
    start(
        """
        recorder = SQLiteRecorder(path, max_queue=5, max_wait=3600.0)
        set_trace_processors([recorder])
        recorder.shutdown()
        sys.modules["kantan_agents.traces.recorder.span_queue"]._START_SECONDS = 0.01
        opened = trace("w")
        opened.start()
        recorder.shutdown()
        starting = threading.Event()

        class Thread(threading.Thread):
            def start(self):
                starting.set()
                super().start()

        lock = threading._active_limbo_lock
        with_lock = threading.Event()

        def destroyed():
            with lock:
                with_lock.set()
                starting.wait()
                record(*(f"destroyed {number}" for number in range(7)), parent=opened)

        second = threading.Thread(target=destroyed)
        second.start()
        with_lock.wait()
        threading.Thread = Thread
        record("first", parent=opened)  # starts the thread, for which the lock is needed
        second.join()
        assert recorder.force_flush(60)
        stats = recorder.stats()
        assert stats.written + stats.dropped == 8 and stats.queued == 0, stats
        """,
        file.path,
        wait=True,
    )
    assert file.is_sound()


def test_a_span_that_fails_in_a_destructor_while_another_failure_is_counted_does_not_wait(
    recorder: SQLiteRecorder,
) -> None:
    class Broken:
        span_id = "span_broken"

        def export(self) -> Any:
            raise RuntimeError

    with recorder._lock:  # a destructor runs here
        recorder.on_span_end(Broken())
    assert recorder.stats().failed == 1
