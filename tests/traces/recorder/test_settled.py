"""What nobody changes any more is copied in the writer's thread; what may change is copied at once."""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agents import custom_span, function_span, generation_span, trace
from agents.tracing import AgentSpanData, get_trace_provider

from kantan_agents import SQLiteRecorder, TraceStore
from kantan_agents.traces.recorder import batches, catch_up, settled, writer
from kantan_agents.traces.recorder.settled import settled_span
from tests.traces.recorder.database_file import DatabaseFile
from tests.traces.recorder.processes import wait_until

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


class _Text(str):
    __slots__ = ()


VALUES = [
    0.1 + 0.2,
    1e22,
    float("nan"),
    2**70,
    "\ud83d half",
    ("a", 1),
    OrderedDict(a=1),
    {1: "a", None: "b"},
    _Text("text"),
    np.float64(0.5),
    np.arange(3),
    b"bytes",
    bytearray(b"bytes"),
    {"set"},
    1j,
    ...,
    array("d", [0.5]),
    (lambda: None).__code__,
]


def _stored(recorder: SQLiteRecorder, file: DatabaseFile, value: Any) -> list[tuple[Any, ...]]:
    with (
        trace("w"),
        generation_span(
            input=[{"role": "user", "content": value}],
            output=[{"content": "é", "value": value}],
            model="m",
            model_config={"value": value},
            usage={"input_tokens": 1, "value": value},
        ),
    ):
        pass
    assert recorder.force_flush(10)
    return file.rows(
        "SELECT span_type, input, output, usage_json, error_json FROM spans ORDER BY rowid DESC LIMIT 1"
    )


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_of_any_type_is_stored_as_if_it_had_been_encoded_at_once(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    recorder = recorder_at(file.path)
    copied = _stored(recorder, file, value)
    monkeypatch.setattr(settled, "copied_contents", lambda _: None)
    assert copied == _stored(recorder, file, value)


@pytest.mark.parametrize("image", [b"png", np.float64(0.5), {"set"}], ids=lambda value: type(value).__name__)
def test_messages_with_an_object_that_change_after_the_end_are_recorded_as_they_were(
    held: Any, file: DatabaseFile, image: Any
) -> None:
    items: list[dict[str, Any]] = [{"content": "before", "image": image}]
    with trace("w"), generation_span(input=items):
        pass
    items[0]["content"] = "after"
    items.append({"content": "after"})
    held.release()
    assert held.force_flush(10)
    ((stored,),) = file.rows("SELECT input FROM spans")
    assert "before" in stored
    assert "after" not in stored


def test_a_text_that_many_messages_share_counts_as_often_as_it_is_written() -> None:
    text = "x" * 10_000
    with trace("w"), generation_span(input=[{"content": text}] * 6) as span:
        pass
    found = settled_span(span, span.span_data)
    assert found is not None
    assert found.size > 6 * len(text)
    with trace("w"), generation_span(input=[{"content": text}] * 7) as longer:
        pass
    assert settled_span(longer, longer.span_data) is None


@pytest.mark.parametrize("depth", [50, 900])
def test_contents_that_are_nested_deeply_are_recorded(
    recorder_at: RecorderAt, file: DatabaseFile, depth: int
) -> None:
    recorder = recorder_at(file.path)
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    with trace("w"), generation_span(input=[{"content": "found"}, {"content": nested}]):
        pass
    assert recorder.force_flush(10)
    assert file.count() == 1


def test_contents_with_a_circle_are_recorded(recorder_at: RecorderAt, file: DatabaseFile) -> None:
    recorder = recorder_at(file.path)
    item: dict[str, Any] = {"content": "found"}
    item["itself"] = [item]
    with trace("w"), generation_span(input=[item]):
        pass
    assert recorder.force_flush(10)
    ((stored,),) = file.rows("SELECT input FROM spans")
    assert "found" in stored


def test_long_contents_are_not_kept_twice() -> None:
    with trace("w"):
        with generation_span(input=[{"content": "x" * 100_000}]) as long:
            pass
        with generation_span(input=[{"content": "x"}]) as short:
            pass
    assert settled_span(long, long.span_data) is None
    copied = settled_span(short, short.span_data)
    assert copied is not None and copied.contents is not None
    assert copied.size > len(copied.contents)


def _size(span: Any) -> int:
    found = settled_span(span, span.span_data)
    return 0 if found is None else found.size


def test_only_spans_of_texts_count_as_settled_and_with_their_texts() -> None:
    with trace("w"):
        spans = get_trace_provider().create_span
        long = function_span("f", LONG, LONG)
        short = function_span("f", "a", "b")
        assert _size(long) - _size(short) == 2 * (len(LONG) - 1)
        assert _size(function_span("f", "a", None)) == 0
        assert _size(custom_span("c", {})) == 0
        assert _size(spans(AgentSpanData("a", tools=["t"]))) > 0
        assert _size(spans(AgentSpanData("a", metadata={"k": []}))) == 0
        with function_span("f", "a", "b") as failed:
            failed.set_error({"message": "m", "data": None})
        assert _size(failed) == 0


def test_a_span_of_an_unknown_class_is_not_settled() -> None:
    class Own(AgentSpanData):
        pass

    with trace("w"):
        assert _size(get_trace_provider().create_span(Own("a"))) == 0


def test_a_busy_writer_stores_figures_when_it_has_time(
    recorder_at: RecorderAt, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Path] = []
    keep = catch_up.FigureKeeper.keep

    def noted(self: catch_up.FigureKeeper, database: Any) -> bool:
        kept.append(file.path)
        return keep(self, database)

    monkeypatch.setattr(catch_up, "FIGURES_AT_ONCE", 1)
    monkeypatch.setattr(catch_up.FigureKeeper, "keep", noted)
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
