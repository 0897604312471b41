"""Fixtures for the tests of the recorder: processes, files, recorders that are closed, the log."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import set_trace_processors

from kantan_agents import SQLiteRecorder
from tests.programs import Preloaded
from tests.traces.recorder.database_file import DatabaseFile
from tests.traces.recorder.processes import Start


@pytest.fixture
def start(preloaded: Preloaded, folder: Path) -> Iterator[Start]:
    start = Start(preloaded, folder)
    yield start
    start.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory that every user can enter; pytest's own directories are private."""
    folder = Path(tempfile.mkdtemp()).resolve()
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def file(folder: Path) -> DatabaseFile:
    return DatabaseFile(folder / "traces.sqlite3")


@pytest.fixture
def recorder_at(
    folder: Path,
) -> Iterator[Callable[..., SQLiteRecorder]]:  # closes before the folder is deleted
    """``recorder_at(path, **options)``: create a recorder that receives the SDK's traces."""
    made = []

    def make(path: Any, **options: Any) -> SQLiteRecorder:
        recorder = SQLiteRecorder(path, flush_on_sigterm=False, **options)
        made.append(recorder)
        set_trace_processors([recorder])
        return recorder

    yield make
    set_trace_processors([])
    for recorder in made:
        recorder.shutdown()


@pytest.fixture
def recorder(recorder_at: Callable[..., SQLiteRecorder], file: DatabaseFile) -> SQLiteRecorder:
    return recorder_at(file.path)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[..., list[str]]:
    """``logged("E62")``: the messages with this code; ``logged()``: all messages of recorder and SDK."""
    caplog.set_level(logging.INFO, "kantan_agents.tracing")

    def messages(code: str | None = None) -> list[str]:
        return [
            record.getMessage()
            for record in caplog.records
            if (code is None or getattr(record, "code", None) == code)
            and record.name in ("kantan_agents.tracing", "openai.agents")
        ]

    return messages
