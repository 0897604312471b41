"""Every file that may hold what users wrote is for its owner only, from the first moment."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agents import set_trace_processors, trace
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import SQLiteRecorder, TraceStore
from kantan_agents.lab import Case, Dataset
from kantan_agents.support.private_files import create_private, open_private
from kantan_agents.tools.retrieval.retrievers.vector_cache import VectorCache
from kantan_agents.traces.schema import make_tables

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files have no modes there")


@pytest.fixture(params=[0o000, 0o022, 0o077])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}


def record_something(path: Path, **options: Any) -> SQLiteRecorder:
    recorder = SQLiteRecorder(path, flush_on_sigterm=False, flush_interval=0.0, **options)
    set_trace_processors([recorder])
    with trace("workflow"):
        pass
    assert recorder.force_flush()
    return recorder


@pytest.mark.usefixtures("_umask")
def test_only_the_owner_may_read_a_new_database_and_its_logs(tmp_path: Path) -> None:
    recorder = record_something(tmp_path / "t.db")
    private = {"t.db": 0o600, "t.db-wal": 0o600, "t.db-shm": 0o600}
    assert modes(tmp_path) == private
    TraceStore(tmp_path / "t.db").prune(keep=0)
    assert modes(tmp_path) == private
    recorder.shutdown()
    assert modes(tmp_path) == {"t.db": 0o600}


@pytest.mark.usefixtures("_umask")
def test_an_existing_database_keeps_its_mode_and_its_logs_have_the_same(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    path.touch()
    path.chmod(0o660)
    recorder = record_something(path)
    assert modes(tmp_path) == {"t.db": 0o660, "t.db-wal": 0o660, "t.db-shm": 0o660}
    recorder.shutdown()


def test_a_database_that_replaces_a_deleted_one_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    recorder = record_something(path)
    path.unlink()
    with trace("again"):
        pass
    assert recorder.force_flush()
    assert set(modes(tmp_path).values()) == {0o600}
    recorder.shutdown()


def test_the_target_of_a_broken_link_is_created_for_its_owner_only(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "target.db")
    record_something(tmp_path / "link.db").shutdown()
    make_tables(tmp_path / "link.db")
    assert (tmp_path / "link.db").is_symlink()
    assert modes(tmp_path)["target.db"] == 0o600


@pytest.mark.usefixtures("_umask")
def test_the_tables_of_a_new_file_are_made_for_its_owner_only(tmp_path: Path) -> None:
    make_tables(tmp_path / "t.db")
    assert modes(tmp_path) == {"t.db": 0o600}


@pytest.mark.usefixtures("_umask")
def test_only_the_owner_may_read_a_new_vector_cache(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.db")
    cache.write({b"key": np.ones(2, dtype="float32").tobytes()})
    assert cache.read([b"key"])
    assert modes(tmp_path) == {"vectors.db": 0o600}


@pytest.mark.parametrize("name", ["cases.jsonl", "cases.csv"])
@pytest.mark.usefixtures("_umask")
def test_only_the_owner_may_read_new_cases(name: str, tmp_path: Path) -> None:
    dataset = Dataset("d", [Case("Hi.", id="1")])
    dataset.save(tmp_path / name)
    assert modes(tmp_path) == {name: 0o600}
    (tmp_path / name).chmod(0o644)
    dataset.save(tmp_path / name)
    assert modes(tmp_path) == {name: 0o644}


@given(mask=st.integers(0, 0o777).map(lambda mask: mask & ~0o700))
def test_no_umask_makes_a_private_file_readable_for_others(
    mask: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("files")
    before = os.umask(mask)
    try:
        os.close(open_private(directory / "opened"))
        create_private(directory / "created")
    finally:
        os.umask(before)
    assert modes(directory) == {"opened": 0o600, "created": 0o600}


def test_sqlite_never_creates_the_database_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    missing: list[str] = []

    def checked(path: str, *args: Any, **options: Any) -> Any:
        if not Path(path).exists() and not path.endswith("?mode=ro"):  # with which SQLite creates nothing
            missing.append(path)
        return connect(path, *args, **options)

    monkeypatch.setattr(sqlite3, "connect", checked)
    make_tables(tmp_path / "made.db")
    record_something(tmp_path / "recorded.db").shutdown()
    with closing(connect(tmp_path / "recorded.db")) as connection:
        assert connection.execute("SELECT COUNT(*) FROM traces").fetchone() == (1,)
    assert missing == []
