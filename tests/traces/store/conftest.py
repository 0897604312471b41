"""A database for each test, and a store that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kantan_agents import TraceStore
from tests.traces.store.sample_database import SampleDatabase, open_sample
from tests.traces.store.server_sample import open_server_sample


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out Postgres where a test is about the file."""
    left_out = [item for item in items if "postgres" in item.name and item.get_closest_marker("file_only")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(params=["indexed", "plain", "postgres"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SampleDatabase]:
    """A database with the library's indexes, one without, as kantan-llm creates it, and one in Postgres."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_traces_url")
        with open_server_sample(tmp_path / "shadow.sqlite3", url) as server:
            yield server
        return
    with open_sample(tmp_path / "traces.sqlite3", indexed=request.param == "indexed") as database:
        yield database


@pytest.fixture
def store(db: SampleDatabase) -> TraceStore:
    return TraceStore(db.path)
