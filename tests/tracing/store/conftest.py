"""A database for each test, and a store that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kantan_agents.tracing.store import TraceStore
from tests.tracing.store.sample_database import SampleDatabase, open_sample


@pytest.fixture(params=["indexed", "plain"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SampleDatabase]:
    """A database with the library's indexes, and one without, as kantan-llm creates it."""
    with open_sample(tmp_path / "traces.sqlite3", indexed=request.param == "indexed") as database:
        yield database


@pytest.fixture
def store(db: SampleDatabase) -> TraceStore:
    return TraceStore(db.path)
