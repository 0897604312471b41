"""A store that keeps its file open in a ``with`` block finds what one finds that opens it each time."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import threading
from pathlib import Path

import pytest

from kantan_agents import TraceStore
from kantan_agents.errors import TraceDatabaseError, TraceNotFoundError
from kantan_agents.traces import trace_file
from tests.programs import Preloaded
from tests.traces.store.sample_database import SampleDatabase, open_sample


def _open_files(path: Path) -> int:
    links = Path("/proc/self/fd").iterdir()
    return sum(os.path.realpath(link) == str(path) for link in links if link.exists())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "traces.sqlite3"
    with open_sample(path) as database:
        database.run("first question", prompt_name="p")
    return path


def _inputs(store: TraceStore, *words: str) -> list[str | None]:
    return [trace.input for trace in store.traces(keywords=words)]


def test_searches_use_one_connection_until_the_end_of_the_outermost_block(path: Path) -> None:
    store = TraceStore(path)
    assert _open_files(path) == 0
    with store as entered:
        assert entered is store
        with store:
            assert _inputs(store, "FIRST") == ["first question"]
            assert _inputs(store, "Straße") == []  # with a function of its own
        for _ in range(3):
            assert _inputs(store, "question") == ["first question"]
            assert _open_files(path) == 1
    assert _open_files(path) == 0
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name]
    assert _inputs(store, "first") == ["first question"]
    with store:
        assert _inputs(store, "first") == ["first question"]


def test_it_finds_the_same_as_another_store_whatever_changes(db: SampleDatabase) -> None:
    with TraceStore(db.path) as store:
        for number in range(3):
            db.run(f"question {number}", prompt_name="p", prompt_version=str(number))
            for filters in (
                {"keywords": ["question"]},
                {"keywords": ["QUESTION", "2"]},
                {"version": "1"},
                {"has_failed": False},
                {"has_error": True},
                {"metadata": {'a"b': None}, "keywords": ["ß"]},
                {"has_denial": False, "limit": 2},
                {},
            ):
                assert store.traces(**filters) == TraceStore(db.path).traces(**filters)
        newest = store.traces(limit=1)[0]
        assert store.traces(before=newest.trace_id) == store.traces()[1:]
        assert store.trace(newest.trace_id).summary == newest


def test_a_file_that_is_replaced_or_deleted_is_noticed(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite3"
    with open_sample(other) as database:
        database.run("second question", prompt_name="p")
    with TraceStore(path) as store:
        assert _inputs(store, "question") == ["first question"]
        other.replace(path)
        assert _inputs(store, "question") == ["second question"]
        path.unlink()
        with pytest.raises(TraceDatabaseError, match="there is no such file"):
            store.traces()
        with open_sample(path) as database:
            database.run("third question", prompt_name="p")
        assert _inputs(store, "question") == ["third question"]
        assert _open_files(path) == 1


def test_an_error_leaves_the_store_usable(path: Path) -> None:
    with TraceStore(path) as store:
        for _ in range(3):
            with pytest.raises(TraceNotFoundError):
                store.traces(before="trace_unknown")
            assert _inputs(store, "first") == ["first question"]


def test_threads_share_it_and_a_search_may_outlast_the_block(path: Path) -> None:
    found: list[list[str | None]] = []
    errors: list[BaseException] = []

    def search() -> None:
        try:
            found.extend(_inputs(store, "question") for _ in range(50))
        except BaseException as error:
            errors.append(error)
            raise

    with TraceStore(path) as store:
        threads = [threading.Thread(target=search) for _ in range(12)]
        for thread in threads:
            thread.start()
        threads[0].join()
        assert 1 <= _open_files(path) <= 12
    for thread in threads:
        thread.join()
    assert errors == []
    assert found == [["first question"]] * 600
    assert _open_files(path) == 0


async def test_async_blocks_do_the_same(path: Path) -> None:
    async with TraceStore(path) as store:
        runs = await asyncio.gather(*(store.traces_async(keywords=["question"]) for _ in range(20)))
        assert [[trace.input for trace in run] for run in runs] == [["first question"]] * 20
        assert _open_files(path) >= 1
    assert _open_files(path) == 0


def test_a_connection_that_would_see_no_changes_is_not_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    later = tmp_path / "later.sqlite3"
    shutil.copyfile(path, later)
    with open_sample(later) as database:
        database.run("second question", prompt_name="p")
    monkeypatch.setattr(trace_file, "may_write", lambda _: False)
    with TraceStore(path) as store:
        assert _inputs(store, "question") == ["first question"]
        assert _open_files(path) == 0
        path.write_bytes(later.read_bytes())
        assert _inputs(store, "question") == ["second question", "first question"]


class _Named(TraceStore):
    name = ""


def test_a_store_is_pickled_without_its_connections_and_with_everything_else(path: Path) -> None:
    store = _Named(path)
    store.name = "mine"
    with store:
        assert _inputs(store, "first") == ["first question"]
        copied = pickle.loads(pickle.dumps(store))
        assert _inputs(copied, "first") == ["first question"]
    assert copied.name == "mine"
    with copied:
        assert _inputs(copied, "first") == ["first question"]
        assert _open_files(path) == 1
    assert _open_files(path) == 0


_FORKS = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, about forks of a process with threads
from kantan_agents import TraceStore
from kantan_agents.traces.recorder import SQLiteRecorder
from agents import custom_span, set_trace_processors, trace

def files():
    links = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return sum(os.path.realpath(link) == sys.argv[1] for link in links)

first, left = os.pipe(), os.pipe()
recorder = SQLiteRecorder(sys.argv[1])
set_trace_processors([recorder])

def record(name):
    with trace(name), custom_span("a"):
        pass
    return recorder.force_flush(20)

assert record("zero")  # the file now has a write-ahead log
recorder.shutdown()
def in_child():
    assert files() == 0, files()  # none of the parent's
    assert record("one")
    os.write(first[1], b"x")
    os.read(left[0], 1)  # the parent has closed the file
    assert record("two")
    recorder.shutdown()
    for _ in range(5):
        assert len(store.traces()) == 4
    assert files() == 1, files()

store = TraceStore(sys.argv[1])
with store:
    assert len(store.traces()) == 2
    assert files() == 1, files()
    child = os.fork()
    if not child:
        status = 1
        try:
            in_child()
            status = 0
        finally:
            os._exit(status)
    os.close(first[1])
    os.read(first[0], 1)
    assert len(store.traces()) == 3
assert files() == 0, files()
os.write(left[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_has_connections_and_locks_of_its_own(path: Path, preloaded: Preloaded) -> None:
    done = preloaded.run(["-c", _FORKS, path], timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(TraceStore(path).traces()) == 4
