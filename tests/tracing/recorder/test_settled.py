"""What nobody changes any more is copied in the writer's thread; what may change is copied at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import custom_span, function_span, generation_span, trace
from agents.tracing import AgentSpanData, get_trace_provider

from kantan_agents.tracing.recorder import SQLiteRecorder, batches, figure_keeper, writer
from kantan_agents.tracing.recorder.settled import settled_size
from kantan_agents.tracing.store import TraceStore
from tests.tracing.recorder.database_file import DatabaseFile
from tests.tracing.recorder.processes import wait_until

RecorderAt = Callable[..., SQLiteRecorder]

LONG = "x" * 10_000


@pytest.fixture
def held(recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A recorder that writes nothing before ``held.release()``."""
    released = threading.Event()
    write = batches.BatchWriter.write

    def waiting(self: batches.BatchWriter) -> bool:
        released.wait(20)
        return write(self)

    monkeypatch.setattr(batches.BatchWriter, "write", waiting)
    recorder = recorder_at(file.path)
    recorder.release = released.set
    return recorder


def test_metadata_that_changes_after_the_start_of_a_trace_is_recorded_as_it_was(
    held: Any, file: DatabaseFile
) -> None:
    metadata: dict[str, Any] = {"user": "Aiko", "inner": {"a": 1}}
    plain: dict[str, Any] = {"user": "Aiko"}
    with trace("w", metadata=metadata):
        metadata["user"] = "Ben"
        metadata["inner"]["a"] = 2
    with trace("w", metadata=plain) as second:
        plain["user"] = "Ben"
        second.metadata = {}
    held.release()
    assert held.force_flush(10)
    assert sorted(map(str, (found.metadata for found in file.traces()))) == [
        "{'user': 'Aiko', 'inner': {'a': 1}}",
        "{'user': 'Aiko'}",
    ]


def test_spans_that_may_change_after_their_end_are_recorded_as_they_were(
    held: Any, file: DatabaseFile
) -> None:
    items: list[dict[str, Any]] = [{"role": "user", "content": "before"}]
    with trace("w"):
        with generation_span(input=items) as generation:
            pass
        with custom_span("c", {"value": "before"}) as custom:
            pass
        with function_span("f", "before", "before") as failed:
            failed.set_error({"message": "before", "data": None})
        generation.span_data.input = []
        items[0]["content"] = "after"
        custom.span_data.data["value"] = "after"
        failed.set_error({"message": "after", "data": None})
    held.release()
    assert held.force_flush(10)
    (found,) = TraceStore(file.path).traces()
    stored = str(TraceStore(file.path).trace(found.trace_id).spans)
    assert "before" in stored
    assert "after" not in stored


def test_only_spans_of_texts_count_as_settled_and_with_their_texts() -> None:
    with trace("w"):
        spans = get_trace_provider().create_span
        long = function_span("f", LONG, LONG)
        short = function_span("f", "a", "b")
        assert settled_size(long) - settled_size(short) == 2 * (len(LONG) - 1)
        assert settled_size(function_span("f", "a", None)) == 0
        assert settled_size(custom_span("c", {})) == 0
        assert settled_size(spans(AgentSpanData("a", tools=["t"]))) > 0
        assert settled_size(spans(AgentSpanData("a", metadata={"k": []}))) == 0
        with function_span("f", "a", "b") as failed:
            failed.set_error({"message": "m", "data": None})
        assert settled_size(failed) == 0


def test_a_span_of_an_unknown_class_is_not_settled() -> None:
    class Own(AgentSpanData):
        pass

    with trace("w"):
        assert settled_size(get_trace_provider().create_span(Own("a"))) == 0


def test_a_busy_writer_stores_figures_when_it_has_time(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Path] = []
    keep = figure_keeper.FigureKeeper.keep

    def noted(self: figure_keeper.FigureKeeper, database: Any) -> bool:
        kept.append(file.path)
        return keep(self, database)

    monkeypatch.setattr(figure_keeper, "AT_ONCE", 1)
    monkeypatch.setattr(figure_keeper.FigureKeeper, "keep", noted)
    monkeypatch.setattr(batches, "_BUSY", 0)  # as if more spans waited after each batch
    recorder = recorder_at(file.path)
    with trace("w"), function_span("f", "a", "b"):
        pass
    assert recorder.force_flush(10)
    assert not kept, "a busy writer stores no figures"
    monkeypatch.setattr(writer, "CHECK_SECONDS", 0.01)
    with trace("w"), function_span("f", "a", "b"):
        pass
    assert recorder.force_flush(10)
    wait_until(lambda: kept)
