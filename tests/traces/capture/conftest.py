"""Fixtures for the tests of what is captured of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import set_trace_processors

from kantan_agents import SQLiteRecorder
from tests.traces.capture.recording import Recording


@pytest.fixture
def recording_at(tmp_path: Path) -> Iterator[Callable[..., Recording]]:
    """``recording_at("other.sqlite3", **options)``: record all runs from now on into this file."""
    made: list[SQLiteRecorder] = []

    def make(name: str = "traces.sqlite3", **options: Any) -> Recording:
        recorder = SQLiteRecorder(tmp_path / name, flush_on_sigterm=False, **options)
        made.append(recorder)
        set_trace_processors([recorder])
        return Recording(recorder)

    yield make
    set_trace_processors([])
    for recorder in made:
        recorder.shutdown()


@pytest.fixture
def recording(recording_at: Callable[..., Recording]) -> Recording:
    """Record all runs of the test."""
    return recording_at()
