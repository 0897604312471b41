"""A trace database that is recorded to, for evaluations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kantan_agents import TraceStore, record_traces


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TraceStore]:
    path = tmp_path / "traces.sqlite3"
    recorder = record_traces(path)
    yield TraceStore(path)
    recorder.shutdown()
