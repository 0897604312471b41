"""Pruning: which traces are deleted, the effect on the file and on other processes."""

from __future__ import annotations

import math
import shutil
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import PruneResult, TraceStore
from kantan_agents.errors import InvalidOptionError, TraceDatabaseError
from kantan_agents.traces.ids import new_run_id, trace_id_of
from kantan_agents.traces.store import connection, prune, retention, steps
from tests.traces.store.sample_database import SampleDatabase, open_sample

pytestmark = pytest.mark.file_only

NOW = datetime.now(timezone.utc)


def remaining(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as reader:
        return [row[0] for row in reader.execute("SELECT id FROM traces ORDER BY rowid")]


def size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.iterdir())


def in_steps_of(monkeypatch: pytest.MonkeyPatch, traces: int) -> None:
    """Delete so many traces of one span in each transaction, however long it takes."""
    monkeypatch.setattr(steps, "FIRST", 2 * traces)
    monkeypatch.setattr(steps, "MOST", 2 * traces)
    monkeypatch.setattr(steps, "_HELD_SECONDS", 1e9)
    monkeypatch.setattr(steps, "_PAUSES", ((math.inf, 0.001),))


def shrinks(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as reader:
        return bool(reader.execute("PRAGMA auto_vacuum").fetchone() == (2,))


def shrinking(database: SampleDatabase) -> dict[str, bool]:
    """Return the option with which the file shrinks."""
    return {} if shrinks(database.path) else {"vacuum": True}


def fill(database: SampleDatabase, traces: int, *, text: int = 2000) -> list[str]:
    return [database.run("x" * text, "y" * text, prompt_name="p") for _ in range(traces)]


def test_the_newest_traces_are_kept_and_the_others_deleted_completely(
    db: SampleDatabase, store: TraceStore
) -> None:
    trace_ids = fill(db, 9)
    db.tracer.shutdown()
    before = size(db.path)
    result = store.prune(keep=4, **shrinking(db))
    assert result == PruneResult(5, 5, before, size(db.path), dry_run=False)
    assert result.bytes_after < before
    assert remaining(db.path) == trace_ids[5:]
    with closing(sqlite3.connect(db.path)) as reader:
        assert reader.execute("SELECT COUNT(*) FROM spans").fetchone() == (4,)
        assert reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert store.prune(keep=4) == PruneResult(0, 0, size(db.path), size(db.path), dry_run=False)


def test_the_age_of_a_trace_is_that_of_its_newest_span(db: SampleDatabase, store: TraceStore) -> None:
    def aged(*days: float) -> str:
        trace_id = db.trace()
        for age in days:
            db.span(trace_id, start=NOW - timedelta(days=age))
        return trace_id

    aged(40)
    active = aged(40, 1)
    aged(31, 35)
    young = aged(29)
    assert store.prune(older_than=timedelta(days=30)).traces == 2
    assert remaining(db.path) == [active, young]


def test_the_age_of_a_trace_without_spans_is_the_time_in_its_id(
    db: SampleDatabase, store: TraceStore
) -> None:
    long_ago = int((NOW - timedelta(days=40)).timestamp() * 1000)
    db.trace(f"trace_{long_ago:012x}7abc8{'0' * 15}")
    stays = [
        db.trace(trace_id_of(new_run_id())),
        db.trace(f"trace_{long_ago:012x}4abc8{'0' * 15}"),  # a random id
        db.trace(f"trace_{long_ago:012x}7abcc{'0' * 15}"),  # another kind of id
        db.trace(f"{long_ago:012x}7abc8{'0' * 15}"),
        db.trace("trace_mine"),
    ]
    db.span(db.trace("trace_timeless"), start=None)
    assert store.prune(older_than=timedelta(days=30)).traces == 1
    assert remaining(db.path) == [*stays, "trace_timeless"]


def test_the_maximum_timedelta_keeps_everything(db: SampleDatabase, store: TraceStore) -> None:
    fill(db, 2)
    assert store.prune(older_than=timedelta.max).traces == 0


def test_the_oldest_are_deleted_until_the_file_is_small_enough(db: SampleDatabase, store: TraceStore) -> None:
    trace_ids = fill(db, 60, text=5000)
    db.tracer.shutdown()
    limit = size(db.path) // 2
    option = shrinking(db)
    planned = store.prune(max_size=limit, dry_run=True, **option)
    result = store.prune(max_size=limit, **option)
    assert result.bytes_after == size(db.path) <= limit
    assert result.traces == 60 - len(remaining(db.path)) > 0
    assert remaining(db.path) == trace_ids[result.traces :]
    assert result.bytes_after > limit / 2  # not many more than needed
    assert planned.bytes_after <= limit
    assert abs(planned.traces - result.traces) <= 3


def test_a_size_that_cannot_be_reached_empties_the_file(db: SampleDatabase, store: TraceStore) -> None:
    fill(db, 5)
    db.tracer.shutdown()
    result = store.prune(max_size=1)
    assert (result.traces, remaining(db.path)) == (5, [])
    assert store.prune(max_size=1).traces == 0


def test_an_estimate_that_was_too_low_is_corrected(
    db: SampleDatabase, store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, 60, text=5000)
    db.tracer.shutdown()
    limit = size(db.path) // 2
    honest, wrong = retention.bytes_in_use, [0.7]
    monkeypatch.setattr(
        retention, "bytes_in_use", lambda reader: int(honest(reader) * (wrong.pop() if wrong else 1))
    )
    result = store.prune(max_size=limit, **shrinking(db))
    assert result.bytes_after == size(db.path) <= limit
    assert result.traces == 60 - len(remaining(db.path))


def test_free_space_is_released_before_any_trace_is_deleted(db: SampleDatabase, store: TraceStore) -> None:
    fill(db, 30, text=5000)
    with db.tracer._conn as writer:
        writer.execute("DELETE FROM spans WHERE rowid % 2")
    db.tracer.shutdown()
    limit = size(db.path) * 3 // 4
    option = shrinking(db)
    assert store.prune(max_size=limit, dry_run=True, **option).bytes_after <= limit
    result = store.prune(max_size=limit, **option)
    assert (result.traces, len(remaining(db.path))) == (0, 30)
    assert result.bytes_after <= limit


def test_the_log_counts_as_part_of_the_database(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        database.tracer._conn.execute("PRAGMA journal_mode = WAL")
        fill(database, 30, text=5000)
        store = TraceStore(database.path)
        log = Path(f"{database.path}-wal").stat().st_size
        result = store.prune(keep=3)
        assert result.bytes_before == database.path.stat().st_size + log or result.bytes_before > log
        assert Path(f"{database.path}-wal").stat().st_size == 0
        assert result.bytes_after == database.path.stat().st_size < result.bytes_before
        fill(database, 1)  # with the connection still open
    assert len(store.traces()) == 4


def test_a_trace_that_exceeds_any_limit_is_deleted(db: SampleDatabase, store: TraceStore) -> None:
    old = db.trace()
    db.span(old, start=NOW - timedelta(days=50))
    fresh = [db.trace() for _ in range(3)]
    for trace_id in fresh:
        db.span(trace_id, start=NOW)
    late = db.trace()
    db.span(late, start=NOW - timedelta(days=50))
    result = store.prune(older_than=timedelta(days=30), keep=3, max_size=10**9)
    assert result.traces == 3
    assert remaining(db.path) == fresh[1:]


@pytest.mark.parametrize("log", [False, True])
def test_a_dry_run_changes_no_byte(tmp_path: Path, log: bool) -> None:
    with open_sample(tmp_path / "t.db", indexed=False) as database:
        if log:
            database.tracer._conn.execute("PRAGMA journal_mode = WAL")
        fill(database, 6)
    before = (tmp_path / "t.db").read_bytes()
    store = TraceStore(tmp_path / "t.db")
    for limits in ({"keep": 2}, {"older_than": timedelta(0)}, {"max_size": 4096}):
        found = store.prune(**limits, dry_run=True, vacuum=True, progress=pytest.fail)
        assert found.dry_run and found.traces >= 4 and found.spans == found.traces
        assert found.bytes_after < found.bytes_before == len(before)
    assert (tmp_path / "t.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["t.db"]
    nothing = store.prune(keep=6, dry_run=True)
    assert (nothing.traces, nothing.bytes_after) == (0, nothing.bytes_before)


def test_a_dry_run_does_not_change_the_log_of_a_killed_writer(tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    with open_sample(tmp_path / "t.db") as database:
        database.tracer._conn.execute("PRAGMA journal_mode = WAL")
        fill(database, 3)
        for name in ("t.db", "t.db-wal"):
            shutil.copy(tmp_path / name, killed / name)
    files = {name: (killed / name).read_bytes() for name in ("t.db", "t.db-wal")}
    found = prune.prune_traces(killed / "t.db", retention.Retention(keep=1), None, dry_run=True)
    assert (found.traces, found.bytes_before) == (2, sum(map(len, files.values())))
    assert {name: (killed / name).read_bytes() for name in files} == files


def test_progress_is_called_after_each_transaction(
    db: SampleDatabase, store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_steps_of(monkeypatch, 2)
    fill(db, 6)
    seen: list[tuple[int, int, int]] = []
    store.prune(keep=1, progress=lambda done, total: seen.append((done, total, len(remaining(db.path)))))
    assert seen == [(2, 5, 4), (4, 5, 2), (5, 5, 1)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("broken pipe")])
def test_after_an_interrupt_deleted_traces_stay_deleted(
    db: SampleDatabase, store: TraceStore, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    in_steps_of(monkeypatch, 2)
    trace_ids = fill(db, 6)

    def interrupt(done: int, total: int) -> None:
        raise error

    with pytest.raises(error if isinstance(error, type) else type(error)):
        store.prune(keep=1, progress=interrupt)
    assert remaining(db.path) == trace_ids[2:]
    assert len(store.traces()) == 4
    assert store.prune(keep=1).traces == 3


def test_the_error_if_shrinking_fails_says_how_many_traces_were_deleted(
    db: SampleDatabase, store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, 4)
    db.tracer.shutdown()
    monkeypatch.setattr(connection, "_CHANGE_WAIT_SECONDS", 0.01)
    with closing(sqlite3.connect(db.path, check_same_thread=False)) as other:
        lock = other.execute
        with pytest.raises(TraceDatabaseError) as caught:
            store.prune(keep=1, progress=lambda done, total: lock("BEGIN IMMEDIATE"), **shrinking(db))
        other.rollback()
    assert caught.value.reason.startswith("3 traces were deleted, but the file could not be made smaller: ")
    assert len(store.traces()) == 1


def test_a_failed_deletion_rolls_back_its_transaction(db: SampleDatabase, store: TraceStore) -> None:
    trace_ids = fill(db, 3)
    with db.tracer._conn as writer:
        writer.execute(
            "CREATE TRIGGER refuse BEFORE DELETE ON traces BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        )
    with pytest.raises(TraceDatabaseError, match="not this one"):
        store.prune(keep=1)
    assert remaining(db.path) == trace_ids
    assert [trace.spans for trace in store.traces()] == [1, 1, 1]


@pytest.mark.parametrize("log", [False, True])
def test_others_can_read_and_write_during_pruning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: bool
) -> None:
    in_steps_of(monkeypatch, 5)
    with open_sample(tmp_path / "t.db") as database:
        if log:
            database.tracer._conn.execute("PRAGMA journal_mode = WAL")
        fill(database, 100)
    store = TraceStore(tmp_path / "t.db")
    started, added, failures = threading.Event(), [], []

    def write() -> None:
        with open_sample(tmp_path / "t.db") as database:
            for _ in range(30):
                added.append(database.run("written meanwhile"))
                started.set()

    def read() -> None:
        try:
            for _ in range(20):
                store.traces(keywords=["x"], limit=5)
        except TraceDatabaseError as error:
            failures.append(error)

    threads = [threading.Thread(target=write), threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    started.wait()
    result = store.prune(keep=50)
    for thread in threads:
        thread.join()
    assert failures == []
    assert set(added) <= {*remaining(tmp_path / "t.db")}
    assert result.traces >= 50


@pytest.mark.parametrize(
    ("option", "limits"),
    [
        ("older_than, keep, max_size", {}),
        ("older_than", {"older_than": 30}),
        ("older_than", {"older_than": timedelta(seconds=-1)}),
        ("keep", {"keep": -1}),
        ("keep", {"keep": True}),
        ("keep", {"keep": 1.5}),
        ("max_size", {"max_size": 0}),
        ("max_size", {"max_size": "2GB"}),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_an_invalid_limit_is_an_error_and_deletes_nothing(
    db: SampleDatabase, store: TraceStore, option: str, limits: dict[str, Any], dry_run: bool
) -> None:
    fill(db, 1)
    with pytest.raises(InvalidOptionError) as caught:
        store.prune(**limits, dry_run=dry_run)
    assert caught.value.option == option
    assert len(store.traces()) == 1


async def test_a_cancelled_prune_stops_after_the_current_transaction(
    db: SampleDatabase, store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_steps_of(monkeypatch, 2)
    trace_ids = fill(db, 10)
    with anyio.CancelScope() as scope:
        await store.prune_async(
            keep=1,
            progress=lambda done, total: anyio.from_thread.run_sync(scope.cancel) if done == 4 else None,
        )
    assert scope.cancelled_caught
    assert remaining(db.path) == trace_ids[4:]
    assert (await store.prune_async(keep=1)).traces == 5


@attrs.frozen
class Aged:
    """A trace with an age in days and a number of spans."""

    days: int
    spans: int


@given(
    traces=st.lists(st.builds(Aged, days=st.integers(0, 5), spans=st.integers(0, 2)), max_size=8),
    keep=st.none() | st.integers(0, 8),
    days=st.none() | st.integers(0, 5),
    plain=st.booleans(),
)
def test_pruning_keeps_exactly_the_traces_within_the_limits(
    traces: Sequence[Aged], keep: int | None, days: int | None, plain: bool
) -> None:
    if keep is None and days is None:
        return
    with (
        TemporaryDirectory() as directory,
        open_sample(Path(directory) / "t.db", indexed=not plain) as database,
    ):
        stays, spans = [], 0
        for number, aged in enumerate(traces):
            trace_id = database.trace()
            for _ in range(aged.spans):
                database.span(trace_id, start=NOW - timedelta(days=aged.days, hours=-12))
            beyond = keep is not None and len(traces) - number > keep
            old = days is not None and aged.spans > 0 and aged.days > days
            if beyond or old:
                spans += aged.spans
            else:
                stays.append(trace_id)
        limits: dict[str, Any] = {"keep": keep, "older_than": None if days is None else timedelta(days=days)}
        store = TraceStore(database.path)
        for dry_run in (True, False):
            result = store.prune(**limits, dry_run=dry_run)
            assert (result.traces, result.spans) == (len(traces) - len(stays), spans)
        assert remaining(database.path) == stays
        assert len(list(store.export())) == len(stays)
