"""A database for each test, and the store that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kantan_agents.tracing.store import TraceStore
from tests.tracing.store.written import Written, written


@pytest.fixture(params=["indexed", "plain"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Written]:
    """A database with our indexes, and one as kantan-llm makes it."""
    with written(tmp_path / "traces.sqlite3", indexed=request.param == "indexed") as database:
        yield database


@pytest.fixture
def store(db: Written) -> TraceStore:
    return TraceStore(db.path)
