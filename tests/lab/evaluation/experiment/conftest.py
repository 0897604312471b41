"""A trace database that is recorded to, for evaluations: a file, and one in Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kantan_agents import TraceStore, record_traces


@pytest.fixture(params=["file", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TraceStore]:
    is_file = request.param == "file"
    path = str(tmp_path / "traces.sqlite3") if is_file else request.getfixturevalue("postgres_traces_url")
    recorder = record_traces(path)
    yield TraceStore(path)
    recorder.shutdown()
