"""The recorder writes the same rows as kantan-llm's own tracer does for the same calls.

There are three exceptions: ``response`` spans, for which kantan-llm records neither input nor output;
secrets, which it masks only in some columns and not by their names; and NaN, with which every metadata search
in SQLite fails.
"""

from __future__ import annotations

import array
import enum
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import agents.tracing
import attrs
import kantan_llm.tracing
import pytest
from agents import set_trace_processors
from agents.tracing import (
    AgentSpanData,
    CustomSpanData,
    FunctionSpanData,
    GenerationSpanData,
    GuardrailSpanData,
    HandoffSpanData,
    MCPListToolsSpanData,
    ResponseSpanData,
    SpeechSpanData,
    TranscriptionSpanData,
)
from hypothesis import given
from hypothesis import strategies as st
from kantan_llm.tracing import SQLiteTracer
from kantan_llm.tracing import span_data as kantan_span_data
from openai.types.responses import Response
from pydantic import BaseModel

from kantan_agents import SQLiteRecorder
from kantan_agents.support.secrets import may_contain_secret
from kantan_agents.support.secrets.names import secret_name
from tests.traces.recorder.database_file import DatabaseFile

try:
    import numpy as np
except ModuleNotFoundError:  # not a dependency of this library, but of many users
    FROM_NUMPY: list[Any] = []
else:
    FROM_NUMPY = [np.array([1, 2]), np.float64(0.5), np.float32(0.5), np.int64(3), np.bool_(1)]

# Two processors, the same calls


class Both:
    """A processor that passes every call to kantan-llm's tracer and to the recorder, one call at a time."""

    def __init__(self, folder: Path) -> None:
        self.theirs = DatabaseFile(folder / "theirs.sqlite3")
        self.ours = DatabaseFile(folder / "ours.sqlite3")
        self.recorder = SQLiteRecorder(self.ours.path, flush_interval=0.001, flush_on_sigterm=False)
        # Its connection belongs to one thread.
        self._thread = ThreadPoolExecutor(1)
        self._tracer = SQLiteTracer(str(self.theirs.path))
        self._order = threading.Lock()
        self._thread.submit(lambda: self._tracer._ensure_conn().execute("PRAGMA synchronous = OFF")).result()

    def __getattr__(self, name: str) -> Callable[[Any], None]:
        def call(span_or_trace: Any) -> None:
            with self._order:
                try:
                    self._thread.submit(getattr(self._tracer, name), span_or_trace).result()
                except Exception:  # noqa: BLE001 - kantan-llm cannot record this, so there is nothing to compare
                    return
                getattr(self.recorder, name)(span_or_trace)

        return call

    def force_flush(self) -> None:
        """Write everything."""
        assert self.recorder.force_flush(60)

    def shutdown(self) -> None:
        """Close both."""
        self.recorder.shutdown()
        self._thread.submit(self._tracer.shutdown).result()
        self._thread.shutdown()


@pytest.fixture
def both(folder: Path) -> Iterator[Both]:
    both = Both(folder)
    set_trace_processors([both])
    kantan_llm.tracing.set_trace_processors([both])
    yield both
    set_trace_processors([])
    kantan_llm.tracing.set_trace_processors([])
    both.shutdown()


# Data


class Text(str):
    __slots__ = ()


class Word(str, enum.Enum):
    ONE = "one"


class Number(enum.IntEnum):
    TWO = 2


class Model(BaseModel):
    name: str = "n"
    score: float | None = 0.5


@attrs.frozen
class Called:
    """A tool call as some clients return it: an object, not a dict."""

    type: str = "function_call"
    id: str = "1"
    call_id: str = "c1"
    name: str = "add"
    arguments: str = '{"a": 1}'


class Scored:
    def __str__(self) -> str:
        return '{"score": 1}'


texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter(
        lambda text: not may_contain_secret(text)
    ),
    # These look as if they might contain a secret, and do not.
    st.sampled_from(
        ["sk-", "Bearer x", "api_key", "\u0131", "\u212a", "\\nsk-", "function_call", "tool_calls"]
    ),
    st.sampled_from(['{"score": 0.5, "comment": "c"}', '{"rubric": {"score": 1}}', '["a"]', "NaN"]),
)
STRANGE: list[Any] = [
    Text("sub"),
    Word.ONE,
    Number.TWO,
    Model(),
    Model(name="é"),
    Called(),
    Scored(),
    b"bytes\xff",
    bytearray(b"x"),
    memoryview(b"x").tolist(),
    {1},
    frozenset({"a"}),
    Decimal("1.50"),
    datetime(2024, 1, 1, tzinfo=timezone.utc),
    *FROM_NUMPY,
    array.array("d", [0.5]),
    1j,
    ...,
    StopIteration,
    range(3),
    int,
    2**70,
    -(2**70),
    math.nan,
    -math.inf,
    "",
    "a\x00b",
    '{"score": 0.25, "comment": "c"}',
    {True: "api_key", "number-1": 0},
    ["api_key", "without-digits"],
]


def lists(inner: st.SearchStrategy[Any], longest: int) -> st.SearchStrategy[list[Any]]:
    """Return a strategy for lists in which no text follows the name of a secret as its value."""

    def is_harmless(items: list[Any]) -> bool:
        named = [value for name, value in pairwise(items) if isinstance(name, str) and secret_name(name)]
        return not any(map(str.isdigit, "".join(map(str, named))))

    return st.lists(inner, max_size=longest).filter(is_harmless)


# The shrinker of Hypothesis takes a drawn member of these for a drawn text or number, and fails.
DRAWN = [value for value in STRANGE if not isinstance(value, enum.Enum)]
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts, texts, st.sampled_from(DRAWN))
# The recorder also masks values by their keys, kantan-llm does not.
names = texts.filter(lambda key: secret_name(key) is None and key != "value")
keys = st.one_of(
    names,
    st.sampled_from(
        ["type", "name", "rubric", "score", "comment", "tool_calls", "function_call", "arguments"]
    ),
    st.integers(-3, 3),
    st.booleans(),
    st.none(),
    st.floats(0, 1),
    st.just(Text("k")),
)
nested = st.recursive(
    leaves,
    lambda inner: st.one_of(
        lists(inner, 3),
        lists(inner, 2).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.dictionaries(keys, inner, max_size=2).map(OrderedDict),
        inner.map(lambda value: {Word.ONE: value, "members": [Word.ONE, Number.TWO]}),
        st.fixed_dictionaries({"type": st.sampled_from(["function_call", "tool_call", "tool", "message"])}),
        st.fixed_dictionaries({"tool_calls": lists(inner, 2)}),
        st.fixed_dictionaries({"rubric": st.fixed_dictionaries({"score": inner})}),
    ),
    max_leaves=6,
)
# Deferred, as Hypothesis would otherwise expand them in every repr.
values = st.deferred(lambda: nested)
objects = st.deferred(lambda: st.dictionaries(keys, values, max_size=3))
usages = st.one_of(
    st.none(),
    st.dictionaries(
        st.sampled_from(
            ["input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "total_tokens"]
        ),
        st.one_of(st.integers(0, 10**6), st.floats(0, 9), st.none(), st.booleans()),
    ),
    # kantan-llm does not sum keys that are not texts, but writes them twice.
    st.dictionaries(names, st.one_of(st.integers(), texts, objects), max_size=2),
)

maybe_texts = st.one_of(st.none(), texts)
sdk_data = st.one_of(
    st.builds(AgentSpanData, texts, lists(texts, 2), st.none(), maybe_texts),
    st.builds(FunctionSpanData, texts, maybe_texts, values, st.one_of(st.none(), objects)),
    st.builds(
        GenerationSpanData,
        input=values,
        output=values,
        model=maybe_texts,
        model_config=st.one_of(st.none(), objects),
        usage=usages,
    ),
    st.builds(CustomSpanData, texts, objects),
    st.builds(CustomSpanData, st.just("judge"), st.fixed_dictionaries({"rubric": objects})),
    st.builds(HandoffSpanData, maybe_texts, maybe_texts),
    st.builds(GuardrailSpanData, texts, st.booleans()),
    st.builds(MCPListToolsSpanData, maybe_texts, lists(texts, 2)),
    st.builds(TranscriptionSpanData, input=maybe_texts, output=maybe_texts, model=maybe_texts),
    st.builds(SpeechSpanData, input=maybe_texts, output=maybe_texts, model=maybe_texts),
    *(
        # Not in every version of the SDK.
        st.builds(getattr(agents.tracing, name), *arguments)
        for name, arguments in {
            "TaskSpanData": (texts, usages),
            "TurnSpanData": (st.integers(0, 9), texts, usages),
        }.items()
        if hasattr(agents.tracing, name)
    ),
)
kantan_data = st.one_of(
    st.builds(kantan_span_data.CustomSpanData, texts, objects),
    st.builds(kantan_span_data.FunctionSpanData, texts, maybe_texts, maybe_texts),
    st.builds(kantan_span_data.GenerationSpanData, values, values, values, maybe_texts, usages),
)
errors = st.one_of(
    st.none(), st.fixed_dictionaries({"message": texts, "data": st.one_of(st.none(), objects)})
)

# Programs


@attrs.frozen
class Begin:
    """A trace begins, of the SDK or of kantan-llm."""

    maker: Any
    name: str
    group: str | None
    metadata: Any


@attrs.frozen
class Open:
    """A span begins in one of the traces, inside one of the spans."""

    trace: int
    parent: int
    data: Any


@attrs.frozen
class Close:
    """A span ends, with or without an error."""

    span: int
    error: Any


@attrs.frozen
class End:
    """A trace ends."""

    trace: int


numbers = st.integers(0, 9)
begins = st.builds(
    Begin,
    st.sampled_from([agents.tracing, kantan_llm.tracing]),
    texts,
    maybe_texts,
    st.one_of(st.none(), objects),
)
opens = st.deferred(lambda: st.builds(Open, numbers, numbers, st.one_of(sdk_data, kantan_data)))
closes = st.deferred(lambda: st.builds(Close, numbers, errors))


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Begin], list[tuple[int, Any]]]:
    """Return the first traces, and steps with the number of their thread."""
    kinds = draw(st.lists(st.sampled_from("oooocccceb"), max_size=16))
    strategies = {"o": opens, "c": closes, "e": st.builds(End, numbers), "b": begins}
    steps = [(draw(st.integers(0, 2)), draw(strategies[kind])) for kind in kinds]
    return draw(st.lists(begins, min_size=1, max_size=2)), steps


class Runner:
    """Executes each step in its thread, and remembers the traces."""

    def __init__(self, threads: list[ThreadPoolExecutor]) -> None:
        self.traces: list[Any] = []
        self._running: list[Any] = []
        self._threads = threads
        self._spans: list[Any] = []

    def run(self, program: tuple[list[Begin], list[tuple[int, Any]]]) -> None:
        """Execute all steps, then end all open spans and traces."""
        begins, others = program
        for number, step in [*((0, begin) for begin in begins), *others]:
            self._in(number, self._take, step)
        while self._spans:
            self._in(len(self._spans) % len(self._threads), self._take, Close(0, None))
        while self._running:
            self._in(1, self._take, End(0))

    def _in(self, number: int, function: Callable[..., Any], *arguments: Any) -> None:
        future: Future[Any] = self._threads[number].submit(function, *arguments)
        future.result()

    def _take(self, step: Any) -> None:
        match step:
            case Begin(maker, name, group, metadata):
                opened = maker.trace(name, group_id=group, metadata=metadata)
                opened.start()
                self.traces.append(opened)
                self._running.append(opened)
            case Open(number, parent_number, data) if self._running:
                opened = self._running[number % len(self._running)]
                inside = [span for span in self._spans if span.trace_id == opened.trace_id]
                parent = [opened, *inside][parent_number % (len(inside) + 1)]
                maker = agents.tracing if isinstance(opened, agents.tracing.Trace) else kantan_llm.tracing
                span = maker.get_trace_provider().create_span(data, parent=parent)
                span.start()
                self._spans.append(span)
            case Close(number, error) if self._spans:
                span = self._spans.pop(number % len(self._spans))
                if error is not None:
                    span.set_error(error)
                span.finish()
            case End(number) if self._running:
                opened = self._running[number % len(self._running)]
                if all(span.trace_id != opened.trace_id for span in self._spans):
                    self._running.remove(opened)
                    opened.finish()


@contextmanager
def threads() -> Iterator[list[ThreadPoolExecutor]]:
    pools = [ThreadPoolExecutor(1) for _ in range(3)]
    yield pools
    for pool in pools:
        pool.shutdown()


# What is in the files

SPAN_COLUMNS = (
    "id, trace_id, parent_id, started_at, ended_at, span_type, name, ingest_seq, input, output, output_kind,"
    "tool_calls_json, structured_json, rubric_json, usage_json, error_json, raw_json"
)


def without_nan(metadata: str) -> str:
    """Return JSON text with null for NaN and infinities."""
    return json.dumps(json.loads(metadata, parse_constant=lambda _: None), ensure_ascii=False)


def spans_of(file: DatabaseFile, trace_id: str, columns: str = SPAN_COLUMNS) -> list[tuple[Any, ...]]:
    return file.rows(f"SELECT {columns} FROM spans WHERE trace_id = ? ORDER BY ingest_seq", trace_id)


def trace_of(file: DatabaseFile, trace_id: str) -> tuple[Any, ...]:
    (row,) = file.rows("SELECT id, workflow_name, group_id, metadata_json FROM traces WHERE id = ?", trace_id)
    return row


def test_any_sequence_of_calls_writes_the_same_rows_as_kantan_llms_tracer(both: Both) -> None:
    with threads() as pools:

        @given(programs())
        def holds(program: Any) -> None:
            runner = Runner(pools)
            runner.run(program)
            both.force_flush()
            for each in runner.traces:
                ours, theirs = (trace_of(file, each.trace_id) for file in (both.ours, both.theirs))
                assert ours[:3] == theirs[:3]
                assert _read(ours[3]) == _read(without_nan(theirs[3]))
                rows = [spans_of(file, each.trace_id) for file in (both.ours, both.theirs)]
                assert [[*map(_read, row)] for row in rows[0]] == [[*map(_read, row)] for row in rows[1]]
            assert both.recorder.stats().failed == 0

        holds()


def _read(value: Any) -> Any:
    """Return the data of a JSON text: small numbers have two spellings, 0.00006 and 6e-05."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError):
            return json.loads(value, parse_constant=str)
    return value


def places_for(value: Any) -> Iterator[Any]:
    """Yield span data with ``value`` in every place."""
    for each in (value, [value], {"k": value}, (value, "sk-")):
        yield FunctionSpanData("f", "i", each, {"mcp": each})
        yield GenerationSpanData(input=each)
        yield GenerationSpanData(output=each)
        yield GenerationSpanData(input=object, output=each)
        yield GenerationSpanData(model_config={"k": each}, usage={"k": each})
        yield kantan_span_data.GenerationSpanData(output="o", output_raw=each)
        yield CustomSpanData("c", {"v": each})
        yield CustomSpanData("judge", {"rubric": {"score": each}})
        yield CustomSpanData("turn", {"sdk_span_type": "turn", "agent_name": each})
        yield CustomSpanData("turn", {"sdk_span_type": "turn", "usage": {"input_tokens": each}})
    yield GenerationSpanData(usage={"input_tokens": value, "prompt_tokens": value})


def test_every_kind_of_value_is_recorded_as_by_kantan_llm(both: Both) -> None:
    different = []
    for value in STRANGE:
        with agents.tracing.trace("w", metadata={"v": value}) as opened:
            for data in places_for(value):
                with agents.tracing.get_trace_provider().create_span(data):
                    pass
            with agents.tracing.custom_span("failed") as span:
                span.set_error({"message": "m", "data": {"v": value}})
        both.force_flush()
        theirs = trace_of(both.theirs, opened.trace_id)
        if trace_of(both.ours, opened.trace_id) != (*theirs[:3], without_nan(theirs[3])):
            different.append((value, trace_of(both.ours, opened.trace_id), theirs))
        pairs = zip(spans_of(both.ours, opened.trace_id), spans_of(both.theirs, opened.trace_id), strict=True)
        different += [(value, ours[8:], theirs[8:]) for ours, theirs in pairs if ours != theirs]
    assert different == []


def test_concurrent_threads_write_the_same_rows_in_the_same_order(both: Both) -> None:
    def work(number: int) -> None:
        for n in range(10):
            with agents.tracing.custom_span(f"{number} {n}", {"n": n}, parent=shared):
                pass
            own = agents.tracing.trace(f"{number} {n}", metadata={"n": n})
            with own, agents.tracing.generation_span(usage={"input_tokens": n, "output_tokens": 0.5}):
                pass
            owned.append(own.trace_id)

    owned: list[str] = []
    shared = agents.tracing.trace("shared")
    shared.start()
    workers = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    shared.finish()
    both.force_flush()
    assert len(owned) == 80
    for trace_id in [shared.trace_id, *owned]:
        assert trace_of(both.ours, trace_id) == trace_of(both.theirs, trace_id)
        ours = spans_of(both.ours, trace_id)
        assert ours == spans_of(both.theirs, trace_id)
        assert [row[7] for row in ours] == list(range(1, len(ours) + 1))


def test_spans_are_numbered_per_trace_in_the_order_in_which_they_ended(both: Both) -> None:
    one, two = (agents.tracing.trace(name) for name in ("one", "two"))
    one.start()
    two.start()
    spans = [agents.tracing.custom_span(str(n), parent=(one, two)[n % 2]) for n in range(6)]
    for span in spans:
        span.start()
    for n in (4, 5, 0, 3, 1, 2):
        spans[n].finish()
    both.force_flush()
    assert spans_of(both.ours, one.trace_id, "ingest_seq, name") == [(1, "4"), (2, "0"), (3, "2")]
    assert spans_of(both.ours, two.trace_id, "ingest_seq, name") == [(1, "5"), (2, "3"), (3, "1")]


def test_a_reused_span_id_replaces_the_row_as_in_kantan_llm(both: Both) -> None:
    with agents.tracing.trace("w") as opened:
        for name in ("first", "second", "first again"):
            span_id = "span_other" if name == "second" else "span_mine"
            with agents.tracing.custom_span(name, span_id=span_id):
                pass
    both.force_flush()
    assert spans_of(both.ours, opened.trace_id) == spans_of(both.theirs, opened.trace_id)


def test_a_trace_that_starts_twice_keeps_its_first_metadata(both: Both) -> None:
    for number in range(3):
        mine = agents.tracing.trace("w", trace_id="trace_mine", metadata={"n": number})
        with mine, agents.tracing.generation_span(usage={"input_tokens": 1}):
            pass
        if number:
            both.force_flush()
    assert trace_of(both.ours, "trace_mine") == trace_of(both.theirs, "trace_mine")
    assert json.loads(trace_of(both.ours, "trace_mine")[3]) == {"n": 0, "usage_total": {"input_tokens": 3}}


def test_a_trace_whose_start_was_not_seen_is_recorded_when_it_ends(
    recorder_at: Any, file: DatabaseFile
) -> None:
    set_trace_processors([])
    opened = agents.tracing.trace("w", group_id="g", metadata={"k": "v"})
    opened.start()
    recorder = recorder_at(file.path)
    with agents.tracing.generation_span(parent=opened, usage={"input_tokens": 1}):
        pass
    assert recorder.force_flush()
    opened.finish()
    assert recorder.force_flush()
    (found,) = file.traces()
    assert (found.workflow_name, found.group_id) == ("w", "g")
    assert found.metadata == {"k": "v", "usage_total": {"input_tokens": 1}}


# Response spans

INPUTS: list[Any] = [
    None,
    "a question",
    [
        {"role": "user", "content": "a question"},
        {"type": "function_call_output", "call_id": "c", "output": "3"},
    ],
]


def response(*output: dict[str, Any]) -> Response:
    return Response.model_validate(
        {
            "id": "resp_1",
            "created_at": 0,
            "model": "m-1",
            "object": "response",
            "output": list(output),
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
        }
    )


def message(*texts: str, kind: str = "output_text") -> dict[str, Any]:
    name = "text" if kind == "output_text" else "refusal"
    content = [{"type": kind, name: text, "annotations": []} for text in texts]
    return {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": content}


CALL = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}', "id": "f1"}
THOUGHT = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]}


@pytest.mark.parametrize(
    ("given_response", "kind", "output", "calls"),
    [
        (None, None, None, None),
        (response(message("an answer")), "text", "an answer", None),
        (response(message("an ", "answer"), message(".")), "text", "an answer.", None),
        (response(THOUGHT, message("an answer")), "text", "an answer", None),
        (response(message("I will not.", kind="refusal")), "text", "I will not.", None),
        (
            response(message('{"score": 0.5, "comments": []}')),
            "judge",
            '{"score": 0.5, "comments": []}',
            None,
        ),
        (response(CALL), "tool_calls", None, ["add"]),
        (response(message("Adding."), CALL, CALL), "tool_calls", None, ["add", "add"]),
        (response(), "text", "", None),
    ],
)
@pytest.mark.parametrize("given_input", INPUTS)
def test_a_response_span_is_recorded_with_input_and_output(
    both: Both, given_input: Any, given_response: Any, kind: Any, output: Any, calls: Any
) -> None:
    usage = {"input_tokens": 2, "output_tokens": 1}
    with agents.tracing.trace("w") as opened:
        data = ResponseSpanData(given_response, given_input, usage)
        with agents.tracing.get_trace_provider().create_span(data):
            pass
    both.force_flush()
    same = "id, parent_id, started_at, ended_at, span_type, name, ingest_seq, usage_json, error_json"
    assert spans_of(both.ours, opened.trace_id, same) == spans_of(both.theirs, opened.trace_id, same)
    assert trace_of(both.ours, opened.trace_id) == trace_of(both.theirs, opened.trace_id)
    (span,) = both.ours.spans(trace_id=opened.trace_id)
    if isinstance(given_input, list):
        assert json.loads(span.input or "") == given_input
    else:
        assert span.input == given_input
    assert span.output_kind == kind
    assert [call["name"] for call in span.tool_calls or ()] == (calls or [])
    if calls is None:
        assert span.output == output
    else:
        assert CALL["arguments"] in [item.get("arguments") for item in json.loads(span.output or "")]
    assert span.raw["span_data"].get("model") == (given_response and "m-1")
    assert span.raw["span_data"]["response_id"] == (given_response and "resp_1")


@given(given_input=values, usage=usages, error=errors)
def test_a_response_span_with_any_input_is_recorded(given_input: Any, usage: Any, error: Any) -> None:
    from kantan_agents.traces.recorder.rows import span_row
    from kantan_agents.traces.recorder.snapshot import snapshot_span

    data = ResponseSpanData(response(message("x"), CALL), given_input, usage)
    with agents.tracing.trace("w"):
        span = agents.tracing.get_trace_provider().create_span(data)
        if error is not None:
            span.set_error(error)
        snapshot = snapshot_span(span, None)
    assert snapshot is not None
    assert len(span_row(snapshot, limited=False).values) == 16


# The length of texts


def leaves_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from leaves_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves_of(inner)


PLACE = {"object", "id", "trace_id", "parent_id", "started_at", "ended_at"}


def test_texts_are_truncated_as_by_kantan_llm_and_also_in_the_other_columns(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    with threads() as pools:

        @given(programs(), st.one_of(st.integers(1, 20), st.integers(20, 500)))
        def holds(program: Any, limit: int) -> None:
            monkeypatch.setenv("KANTAN_LLM_TRACING_MAX_CHARS", str(limit))
            runner = Runner(pools)
            runner.run(program)
            both.force_flush()
            columns = "id, parent_id, started_at, ended_at, span_type, name, ingest_seq, input, output"
            for each in runner.traces:
                assert spans_of(both.ours, each.trace_id, columns) == spans_of(
                    both.theirs, each.trace_id, columns
                )
                assert trace_of(both.ours, each.trace_id)[1:3] == trace_of(both.theirs, each.trace_id)[1:3]
                for row in spans_of(
                    both.ours, each.trace_id, "tool_calls_json, structured_json, rubric_json, error_json"
                ):
                    for column in row:
                        assert all(len(text) <= limit for text in leaves_of(json.loads(column or "null")))
                for (raw,) in spans_of(both.ours, each.trace_id, "raw_json"):
                    exported = {key: value for key, value in json.loads(raw).items() if key not in PLACE}
                    for place in ("name", "type"):
                        exported["span_data"].pop(place, None)
                    assert all(len(text) <= limit for text in leaves_of(exported))

        holds()


def test_a_limit_does_not_truncate_ids_names_and_metadata(
    recorder_at: Any, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KANTAN_LLM_TRACING_MAX_CHARS", "5")
    recorder = recorder_at(file.path)
    metadata = {"agent_run_id": "0123456789", "note": "the key is sk-0123456789abc"}
    opened = agents.tracing.trace("a workflow", group_id="a group id", metadata=metadata)
    with opened, agents.tracing.function_span("a long name", "a long input", "a long output"):
        pass
    assert recorder.force_flush()
    (found,) = file.traces(metadata={"agent_run_id": "0123456789"})
    assert (found.workflow_name, found.group_id) == ("a workflow", "a group id")
    assert found.metadata["note"] == "the key is sk-***"
    (span,) = file.spans(trace_id=opened.trace_id)
    assert (span.name, span.input, span.output) == ("a long name", "a lon", "a lon")


@pytest.mark.parametrize("limit", ["", "0", "-3", "many"])
def test_an_invalid_limit_truncates_nothing(
    recorder_at: Any, file: DatabaseFile, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setenv("KANTAN_LLM_TRACING_MAX_CHARS", limit)
    recorder = recorder_at(file.path)
    with agents.tracing.trace("w"), agents.tracing.function_span("f", "x" * 1_000, "y" * 1_000):
        pass
    assert recorder.force_flush()
    (span,) = file.spans()
    assert (span.input, span.output) == ("x" * 1_000, "y" * 1_000)


def test_the_nan_exception_is_a_real_difference(both: Both) -> None:
    metadata = {"n": math.nan, "deep": [{"i": math.inf}]}
    with agents.tracing.trace("w", metadata=metadata) as opened:
        pass
    both.force_flush()
    assert trace_of(both.theirs, opened.trace_id)[3] == '{"n": NaN, "deep": [{"i": Infinity}]}'
    assert trace_of(both.ours, opened.trace_id)[3] == '{"n": null, "deep": [{"i": null}]}'
