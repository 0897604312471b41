"""Which runs of a program are recorded: those that begin after ``record_traces``."""

from __future__ import annotations

from pathlib import Path

import kantan_llm.tracing
import pytest
from agents import set_trace_processors

from kantan_agents import Agent, TraceStore, record_traces
from kantan_agents.testing import OfflineServer


def test_record_traces_records_the_runs_after_it(folder: Path) -> None:
    path = folder / "traces.sqlite3"
    with OfflineServer(["one", "two", "three"]) as server:
        agent = Agent("a", "Help.", model=server.bundle(), tool_providers=None)
        agent.run("before")
        recorder = record_traces(path, flush_on_sigterm=False)
        try:
            agent.run("after")
            agent.run("and later")
            assert recorder.force_flush()
        finally:
            set_trace_processors([])
            kantan_llm.tracing.set_trace_processors([])
            recorder.shutdown()
    assert [trace.input for trace in TraceStore(path).traces()] == ["and later", "after"]


def test_without_record_traces_no_file_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KANTAN_AGENTS_DB", str(folder / "named.sqlite3"))
    with OfflineServer(["one"]) as server:
        Agent("a", "Help.", model=server.bundle(), tool_providers=None).run("hi")
    assert list(folder.iterdir()) == []
