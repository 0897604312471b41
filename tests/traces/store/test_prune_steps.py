"""Pruning in steps: what an interrupt, a full disk and other writers meet."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import SQLiteRecorder, TraceStore
from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.schema import make_tables
from kantan_agents.traces.store import connection, steps
from kantan_agents.traces.store.connection import changing
from tests.programs import Preloaded
from tests.traces.store.sample_database import Exported, SampleDatabase, open_sample
from tests.traces.store.test_prune import fill, in_steps_of, remaining, shrinks

pytestmark = pytest.mark.file_only

KILLED = """
import os, signal, sys
from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.store import TraceStore, connection, steps

steps.FIRST = steps.MOST = 3
steps._HELD_SECONDS = 1e9
TraceStore(sys.argv[1]).prune(
    keep=1, progress=lambda done, total: done >= int(sys.argv[2]) and os.kill(os.getpid(), signal.SIGKILL)
)
"""


def count(path: Path, query: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(query).fetchone()[0])


def is_sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def test_a_file_that_the_library_creates_shrinks_in_steps(tmp_path: Path) -> None:
    make_tables(tmp_path / "tables.db")
    recorder = SQLiteRecorder(tmp_path / "recorded.db")
    recorder.on_trace_start(Exported({"id": "trace_x", "workflow_name": "w", "metadata": None}))
    recorder.shutdown()
    assert shrinks(tmp_path / "tables.db")
    assert shrinks(tmp_path / "recorded.db")


@pytest.mark.parametrize("missing", [0, 1])
def test_a_prune_without_space_for_the_log_names_the_bytes_and_leaves_the_file_as_it_is(
    tmp_path: Path, missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.db"
    make_tables(path)
    with closing(sqlite3.connect(path)) as writer:  # its log stays while it is open
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        row = ("trace_x", "w", json.dumps("x" * 1_000_000))
        writer.execute("INSERT INTO traces (id, workflow_name, metadata_json) VALUES (?, ?, ?)", row)
        writer.commit()
        log = Path(f"{path}-wal")
        sizes = path.stat().st_size, log.stat().st_size
        needed = count(path, "PRAGMA page_count") * count(path, "PRAGMA page_size") - sizes[0]
        monkeypatch.setattr(connection, "disk_usage", lambda _: SimpleNamespace(free=needed - missing))
        if missing:
            with pytest.raises(TraceDatabaseError, match=f"{needed:,} bytes must be free"):
                TraceStore(path).prune(keep=0)
            assert (path.stat().st_size, log.stat().st_size) == sizes
        else:
            assert TraceStore(path).prune(keep=0).traces == 1
            assert path.stat().st_size < needed
            assert log.stat().st_size == 0


def test_a_file_of_kantan_llm_keeps_its_size_until_a_vacuum_is_requested(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db", indexed=False) as database:
        fill(database, 60, text=5000)
    store = TraceStore(tmp_path / "t.db")
    planned = store.prune(keep=30, dry_run=True)
    first = store.prune(keep=30)
    # Indexes are made first, so the file may have grown.
    assert first.bytes_after >= first.bytes_before
    assert first.free_bytes > first.bytes_after / 3
    assert planned.bytes_after == planned.bytes_before
    assert planned.free_bytes > planned.bytes_before / 3
    whole = store.prune(keep=30, vacuum=True)
    assert (whole.traces, whole.free_bytes) == (0, 0)
    assert whole.bytes_after < first.bytes_after * 2 / 3
    assert shrinks(tmp_path / "t.db")
    assert store.prune(keep=10).bytes_after < whole.bytes_after * 2 / 3


def test_pages_are_freed_while_traces_are_deleted_because_the_disk_may_be_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_steps_of(monkeypatch, 5)
    path = tmp_path / "t.db"
    make_tables(path)
    with open_sample(path) as database:
        fill(database, 60, text=5000)
    pages: list[int] = []
    TraceStore(path).prune(keep=1, progress=lambda *_: pages.append(count(path, "PRAGMA page_count")))
    assert len(pages) > 1
    assert pages[-1] < pages[0]


def test_in_a_file_that_does_not_shrink_the_size_is_that_of_the_pages_in_use(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db", indexed=False) as database:
        fill(database, 60, text=5000)
    limit = (tmp_path / "t.db").stat().st_size // 2
    store = TraceStore(tmp_path / "t.db")
    result = store.prune(max_size=limit)
    assert 0 < result.traces < 60
    assert result.bytes_after - result.free_bytes <= limit
    assert store.prune(max_size=limit).traces == 0


@pytest.mark.parametrize("done", [0, 1, 3])
def test_after_a_kill_the_file_is_sound_and_the_next_prune_finishes(
    tmp_path: Path, done: int, preloaded: Preloaded
) -> None:
    path = tmp_path / "t.db"
    with open_sample(path) as database:
        database.tracer._conn.execute("PRAGMA journal_mode = WAL")
        large = database.trace()
        for _ in range(7):  # more spans than one step deletes
            database.span(large, input="x" * 5000)
        trace_ids = fill(database, 6)
        killed = preloaded.run(["-c", KILLED, path, str(done)])
        assert killed.returncode == -9, killed.stderr
    assert is_sound(path)
    assert [*remaining(path)][-1] == trace_ids[-1]
    assert len(remaining(path)) > 1
    store = TraceStore(path)
    assert sum(stats.runs for stats in store.prompts()) == len({*remaining(path)} - {large})
    result = store.prune(keep=1)
    assert remaining(path) == [trace_ids[-1]]
    assert count(path, "SELECT COUNT(*) FROM spans") == 1
    assert result.free_bytes == 0
    assert is_sound(path)


def test_a_trace_with_more_spans_than_a_step_deletes_is_deleted_over_several(
    db: SampleDatabase, store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_steps_of(monkeypatch, 2)
    large = db.trace()
    for number in range(9):
        db.span(large, start=number)
    fill(db, 1)
    seen: list[int] = []
    progress = lambda done, total: seen.append(count(db.path, "SELECT COUNT(*) FROM spans"))
    assert (store.prune(keep=1, progress=progress).spans, seen) == (9, [6, 2, 1])


def test_interrupted_within_a_trace_the_same_age_deletes_the_rest(
    db: SampleDatabase, store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_steps_of(monkeypatch, 2)
    large = db.trace()
    for number in range(9):
        db.span(large, start=number)

    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.prune(older_than=timedelta(days=1), progress=interrupt)
    assert remaining(db.path) == [large]
    assert store.prune(older_than=timedelta(days=1)).spans == 5
    assert remaining(db.path) == []


def test_a_transaction_for_which_the_disk_has_no_space_is_repeated_with_fewer_rows(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE log(body)")
        connection.execute("PRAGMA max_page_count = 20")
        tried: list[int] = []

        def write(rows: int) -> int:
            tried.append(rows)
            connection.executemany("INSERT INTO log VALUES (?)", [("x" * 3000,)] * rows)
            return rows

        assert steps.TransactionSteps(connection).run(write, steps.Pace()) == 12
        assert tried == [100, 12]
        assert connection.execute("SELECT COUNT(*) FROM log").fetchone() == (12,)
        connection.execute("PRAGMA max_page_count = 1")  # no more than there are
        with pytest.raises(sqlite3.OperationalError, match="full"):
            while True:  # pages that are in use have some space left
                steps.TransactionSteps(connection).run(write, steps.Pace())
        assert not connection.in_transaction


def test_a_prune_uses_the_log_again_so_the_disk_need_not_hold_all_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_steps_of(monkeypatch, 5)
    log = tmp_path / "t.db-wal"
    with open_sample(tmp_path / "t.db") as database:
        database.tracer._conn.execute("PRAGMA journal_mode = WAL")
        fill(database, 300, text=20_000)
        database.tracer._conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        sizes: list[int] = []
        result = TraceStore(tmp_path / "t.db").prune(
            keep=10, progress=lambda done, total: sizes.append(log.stat().st_size)
        )
    assert result.bytes_after < result.bytes_before / 10
    assert 0 < max(sizes) < result.bytes_before / 10


# The seconds between SQLite's attempts to get a lock; the last is repeated.
BETWEEN_ATTEMPTS = [0.001, 0.002, 0.005, 0.010, 0.015, 0.020, 0.025, 0.025, 0.025, 0.050, 0.050, *[0.1] * 20]


@given(st.floats(0, 2))
def test_a_writer_that_waited_for_a_slow_step_finds_the_next_pause(waited: float) -> None:
    # A writer that waited longer begins later to look seldom, so the longest wait decides.
    looks = next(time for time in accumulate(BETWEEN_ATTEMPTS) if time >= waited)
    assert looks < waited + steps.pause_after(waited)


def test_a_writer_comes_in_between_any_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_steps_of(monkeypatch, 2)
    with open_sample(tmp_path / "t.db") as database:
        fill(database, 10)

        def write(_done: int, _total: int) -> None:
            with changing(tmp_path / "t.db", wait=0) as connection:
                connection.execute("INSERT INTO traces(id) VALUES (hex(randomblob(8)))")

        assert TraceStore(database.path).prune(keep=1, progress=write).traces == 9
        assert len(remaining(database.path)) == 6
