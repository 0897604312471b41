"""The files in which runs are recorded, and counts that prove it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import attrs

from benchmarks.peers.compared import OURS
from benchmarks.trace_files import copied_file, ended_trace, fill
from benchmarks.trace_runs import flush, traced_tool_turn
from kantan_agents import set_trace_processors
from kantan_agents.traces.recorder import SQLiteRecorder


def _indexed(path: Path) -> None:
    """Let the library's recorder create its indexes, which it does once per file."""
    recorder = SQLiteRecorder(path)
    asyncio.run(ended_trace(traced_tool_turn())).record(recorder)
    set_trace_processors([])
    flush(recorder)
    recorder.shutdown()


@attrs.frozen
class TraceDatabases:
    """The databases in a folder, one per framework, size and generation of processes."""

    folder: Path

    def path(self, framework: str, spans: int, generation: int) -> Path:
        """Return the path of ``framework``'s database with ``spans`` spans; if 0, it does not exist yet.

        The next generation reuses a large database, since the few added spans do not matter.
        """
        if not spans:
            return self.folder / f"{framework}-empty-{generation}.sqlite3"
        path = self.folder / f"{framework}-{spans}.sqlite3"
        if not path.exists():
            copied_file(self._filled(spans), path)
            if framework == OURS:
                _indexed(path)
        return path

    def _filled(self, spans: int) -> Path:
        path = self.folder / f"filled-{spans}.sqlite3"
        if not path.exists():
            original = asyncio.run(ended_trace(traced_tool_turn()))
            set_trace_processors([])
            fill(path, [original], spans)
        return path


@attrs.frozen
class Recorded:
    """The number of traces and spans in a database."""

    traces: int
    spans: int

    def __sub__(self, other: Recorded) -> Recorded:
        return Recorded(self.traces - other.traces, self.spans - other.spans)


def recorded(path: Path) -> Recorded:
    """Return the number of traces and spans in the database at ``path``, 0 if it does not exist."""
    if not path.exists():
        return Recorded(0, 0)
    with closing(sqlite3.connect(path)) as connection:
        counts = (
            connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("traces", "spans")
        )
        return Recorded(*(int(count) for (count,) in counts))
