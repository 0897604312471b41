"""What holds for every run and every value: trees are whole, ids are well-formed, values can be encoded."""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Callable
from typing import Any

import pytest
from agents import custom_span, function_span, generation_span, set_trace_processors
from agents import trace as sdk_trace
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from kantan_agents import OtelExporter
from kantan_agents.support.secrets import may_contain_secret
from kantan_agents.traces.ids import new_run_id, trace_id_of
from kantan_agents.traces.telemetry import conventions as names
from kantan_agents.traces.telemetry.content import input_messages, messages_of, output_messages
from kantan_agents.traces.telemetry.own_ids import OwnIds
from kantan_agents.traces.telemetry.values import attribute_value, attributes_of, json_text

# Text with everything that JSON and UTF-8 are asked about: controls, surrogates, emoji.
TEXT = st.text(st.characters(), max_size=20)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | st.integers(), inner, max_size=4),
    max_leaves=12,
)


class Kept:
    """An exporter to memory, for many examples."""

    def __init__(self, **options: Any) -> None:
        self.memory = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.memory))
        self.exporter = OtelExporter(tracer_provider=provider, **options)

    def spans_of(self, work: Callable[[], Any]) -> list[ReadableSpan]:
        self.memory.clear()
        set_trace_processors([self.exporter])
        work()
        assert self.exporter.force_flush()
        return list(self.memory.get_finished_spans())


@pytest.fixture(scope="module")
def kept() -> Kept:
    return Kept(content=True)


def span_id(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def check_whole(spans: list[ReadableSpan]) -> None:
    """Check that the spans are one tree in one trace, with well-formed ids and times."""
    ids = {span_id(span) for span in spans}
    assert len(ids) == len(spans)
    assert 0 not in ids
    assert len({span.context.trace_id for span in spans if span.context}) == 1
    assert len({(span.attributes or {})[names.TRACE_ID] for span in spans}) == 1
    roots = [span for span in spans if span.parent is None]
    assert len(roots) == 1
    for span in spans:
        assert span.parent is None or span.parent.span_id in ids
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.start_time <= span.end_time
    encode_spans(spans).SerializeToString()


KINDS = st.sampled_from(["custom", "function", "generation"])
TREES: st.SearchStrategy[Any] = st.recursive(
    KINDS.map(lambda kind: (kind, [])),
    lambda inner: st.tuples(KINDS, st.lists(inner, max_size=3)),
    max_leaves=8,
)


def opened(kind: str) -> Any:
    if kind == "custom":
        return custom_span("c", {"a": 1})
    if kind == "function":
        return function_span("f", "{}", "out")
    return generation_span(model="m", usage={"input_tokens": 1, "output_tokens": 2})


def count(tree: Any, inside_chat: bool = False) -> int:
    kind, below = tree
    is_chat = kind == "generation"
    return int(not (is_chat and inside_chat)) + sum(count(one, is_chat) for one in below)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trees=st.lists(TREES, max_size=4), concurrent=st.booleans())
def test_every_tree_of_spans_arrives_whole(kept: Kept, trees: list[Any], concurrent: bool) -> None:
    async def walk(tree: Any) -> None:
        kind, below = tree
        with opened(kind):
            inside = trace.get_current_span()
            if concurrent:
                await asyncio.gather(*map(walk, below))
            else:
                for one in below:
                    await walk(one)
            assert trace.get_current_span() is inside

    async def work() -> None:
        with sdk_trace("w"):
            await asyncio.gather(*map(walk, trees))
        assert not trace.get_current_span().get_span_context().is_valid

    spans = kept.spans_of(lambda: asyncio.run(work()))
    check_whole(spans)
    assert len(spans) == 1 + sum(map(count, trees))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(5)), leaves=st.lists(st.booleans(), min_size=5, max_size=5))
def test_spans_that_end_in_any_order_arrive_whole(kept: Kept, order: list[int], leaves: list[bool]) -> None:
    def work() -> None:
        with sdk_trace("w"):
            root = trace.get_current_span()
            spans = [custom_span(str(number)) for number in range(5)]
            for span in spans:
                span.start(mark_as_current=True)
            for number in order:
                if not leaves[number]:
                    spans[number].finish()
            if not any(leaves):
                assert trace.get_current_span() is root
            for number in order:
                if leaves[number]:
                    spans[number].finish()
            assert trace.get_current_span() is root

    # The SDK's own current span is left behind.
    check_whole(contextvars.copy_context().run(kept.spans_of, work))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(metadata=st.dictionaries(TEXT, DATA, max_size=4), name=TEXT, given_=DATA, answer=DATA)
def test_any_metadata_and_content_can_be_sent(
    kept: Kept, metadata: Any, name: str, given_: Any, answer: Any
) -> None:
    def work() -> None:
        asked = [{"role": "user", "content": given_}]
        with (
            sdk_trace(name, metadata=metadata),
            function_span(name, json.dumps(given_), str(answer)),
            generation_span(input=asked, output=[answer], model=name),
        ):
            pass

    check_whole(kept.spans_of(work))


@given(value=DATA)
def test_any_value_is_a_value_of_an_attribute(value: Any) -> None:
    found = attribute_value(value)
    assert found is None or isinstance(found, (str, bool, int, float, list))
    if isinstance(found, str):
        found.encode()
    if isinstance(found, list):
        assert len({type(one) for one in found}) == 1
    if isinstance(value, (bool, str)) and not may_contain_secret(str(value)) and str(value).isascii():
        assert found == value


@example({True: "api_key", "step 2": ("password", None)})
@example({"The option is --password=": True, "text": 'password: "'})
@given(value=DATA)
def test_data_is_sent_as_json(value: Any) -> None:
    json.loads(json_text(value))


@given(values=st.dictionaries(TEXT, DATA, max_size=5))
def test_attributes_leave_out_only_what_has_no_value(values: dict[str, Any]) -> None:
    found = attributes_of(values, "p.")
    assert all(name.startswith("p.") for name in found)
    assert len(found) <= len(values)


ITEM = st.one_of(
    TEXT,
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "tool"]), "content": DATA}
    ),
    st.fixed_dictionaries(
        {"type": st.just("function_call"), "call_id": TEXT, "name": TEXT, "arguments": TEXT}
    ),
    st.fixed_dictionaries({"type": st.just("function_call_output"), "call_id": TEXT, "output": DATA}),
    st.fixed_dictionaries({"type": st.just("reasoning"), "summary": st.lists(DATA, max_size=2)}),
    st.dictionaries(TEXT, DATA, max_size=3),
)


@given(items=st.lists(ITEM, max_size=5))
def test_messages_have_the_shape_of_the_conventions(items: list[Any]) -> None:
    for messages in (input_messages(items), output_messages(items)):
        for message in messages:
            assert isinstance(message["role"], str)
            assert all(isinstance(part["type"], str) for part in message["parts"])
    given_ = messages_of(items, items)
    assert set(given_) <= {names.SYSTEM_INSTRUCTIONS, names.INPUT_MESSAGES, names.OUTPUT_MESSAGES}


@given(text=TEXT)
def test_any_trace_id_of_the_sdk_gives_a_valid_id(text: str) -> None:
    ids = OwnIds()
    ids.next_is(f"trace_{text}")
    assert 0 < ids.generate_trace_id() < 2**128
    run_id = new_run_id()
    ids.next_is(trace_id_of(run_id))
    assert format(ids.generate_trace_id(), "032x") == run_id
    assert format(ids.generate_trace_id(), "032x") != run_id, "used once"
