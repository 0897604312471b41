"""Searching for traces: what is found, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import agents
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import RUBRIC, Agent, Prompt, TraceStore
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import (
    OfflineServer,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)
from kantan_agents.traces.store import find
from tests.traces.store.sample_database import NOON, SampleDatabase, open_sample


def ids(found: Any) -> list[str]:
    return [trace.trace_id for trace in found]


def replying(*texts: str) -> Any:
    return ScriptedModel([[assistant_message(text)] for text in texts])


# Real runs


async def test_runs_are_found_by_every_filter(traces: Any) -> None:
    async def look_up(order: int) -> str:
        """Look up."""
        return f"order {order}"

    calls = ScriptedModel(
        [[function_call("look_up", {"order": 7}, call_id="c")], [assistant_message("Late.")]]
    )
    prompt = Prompt("support", "v1", "Help.")
    await Agent("helper", prompt, model=calls, tools=[look_up], metadata={"tenant": "acme"}).run_async("Hm?")
    await Agent("helper", Prompt("support", "v2", "Help."), model=replying("Soon.")).run_async("Where?")
    verdict = replying('{"score": 0.25, "comments": ["tone harsh"]}')
    await Agent("judge", "Judge.", model=verdict, output_type=RUBRIC).run_async("Judge it.")
    with pytest.raises(ConnectionError):
        await Agent("failing", "x", model=ScriptedModel([ConnectionError("gone")])).run_async("Hello?")

    store = TraceStore(traces.path)
    everything = store.traces()
    failing, judge_run, second, first = everything
    assert [trace.metadata["agent_name"] for trace in everything] == ["failing", "judge", "helper", "helper"]
    for expected, filters in [
        ([first], {"keywords": ["order 7"]}),
        ([first], {"keywords": ["HM?", "late"]}),
        ([], {"keywords": ["Hm?", "Soon"]}),
        ([first], {"metadata": {"tenant": "acme"}}),
        ([second, first], {"agent": "helper"}),
        ([second, first], {"prompt": "support"}),
        ([second], {"version": "v2"}),
        ([first], {"prompt": "support", "version": "v1"}),
        ([first], {"tool": "look_up"}),
        ([], {"tool": "look"}),
        ([failing], {"has_error": True}),
        ([judge_run, second, first], {"has_error": False}),
        ([failing], {"has_failed": True}),
        ([judge_run, second, first], {"has_failed": False}),
        ([], {"has_denial": True}),
        (everything, {"has_denial": False}),
        ([], {"has_cut_answer": True}),
        (everything, {"has_cut_answer": False}),
        ([judge_run], {"rubric_below": 0.5}),
        ([], {"rubric_below": 0.25}),
        ([failing, judge_run], {"limit": 2}),
        (everything, {"started_from": first.started_at}),
        ([], {"started_from": failing.ended_at + timedelta(seconds=1)}),
        ([first], {"started_to": first.ended_at}),
        ([first], {"keywords": ["late"], "tool": "look_up", "prompt": "support", "has_error": False}),
    ]:
        assert store.traces(**filters) == expected, filters


async def test_a_run_that_recovered_has_an_error_but_did_not_fail(traces: Any) -> None:
    async def break_down() -> str:
        """Break down."""
        raise ConnectionError("gone")

    def calling(tool: str) -> Any:
        return ScriptedModel([[function_call(tool, {}, call_id="c")], [assistant_message("Never mind.")]])

    await Agent("recovers", "x", model=calling("break_down"), tools=[break_down]).run_async("Hm?")
    with pytest.raises(ConnectionError):
        await Agent("fails", "x", model=ScriptedModel([ConnectionError("gone")])).run_async("Hello?")
    store = TraceStore(traces.path)
    failed, recovered = store.traces(has_error=True)
    assert (recovered.metadata["agent_name"], recovered.error) == ("recovers", None)
    assert recovered.failed_spans == 1
    assert store.traces(has_failed=True) == [failed]
    assert store.traces(has_failed=False) == [recovered]
    assert store.traces(has_error=True, has_failed=False) == [recovered]


@pytest.mark.parametrize("rules", [{"deny": ["look_up"]}, {"params": {"look_up": {"order": {"maximum": 1}}}}])
async def test_runs_with_refused_calls_are_found(traces: Any, rules: dict[str, Any]) -> None:
    async def look_up(order: int) -> str:
        """Look up."""
        return f"order {order}"

    def calls() -> Any:
        call = function_call("look_up", {"order": 7}, call_id="c")
        return ScriptedModel([[call], [assistant_message("Late.")]])

    await Agent("a", "x", model=calls(), tools=[look_up]).run_async("Hm?")
    await Agent("a", "x", model=calls(), tools=[look_up]).run_async("Hm?", {"tool_rules": rules})
    store = TraceStore(traces.path)
    refused, allowed = store.traces()
    assert store.traces(has_denial=True) == [refused]
    assert store.traces(has_denial=False) == [allowed]
    assert store.traces(has_denial=True, tool="look_up", has_failed=False) == [refused]


async def test_runs_inside_an_open_trace_are_found_by_their_own_metadata(traces: Any) -> None:
    with agents.trace("request", metadata={"tenant": "acme", "shared": "outer"}) as outer:
        inner = Agent(
            "inner", Prompt("p", "v1", "t"), model=replying("x"), metadata={"ticket": 7, "shared": "inner"}
        )
        await inner.run_async("hi")
        await Agent("second", "t", model=replying("y")).run_async("hi")
    store = TraceStore(traces.path)
    for filters in (
        {"agent": "inner"},
        {"agent": "second"},
        {"prompt": "p", "version": "v1"},
        {"metadata": {"ticket": 7}},
        {"metadata": {"tenant": "acme"}, "agent": "second"},
        {"metadata": {"shared": "inner"}},
        {"metadata": {"shared": "outer"}},
        {"metadata": {"ticket": None}},
        {"agent": "inner", "keywords": ["hi"], "has_error": False},
    ):
        assert ids(store.traces(**filters)) == [outer.trace_id], filters
    # Two runs, neither of which has both.
    assert store.traces(agent="second", version="v1") == []


async def test_a_run_is_found_by_the_agents_it_was_handed_off_to(traces: Any) -> None:
    target = Agent("target", Prompt("expert", "v9", "t"), model=replying("from the target"))
    front = ScriptedModel([[function_call("transfer_to_target", {}, call_id="c")]])
    await Agent("front", "t", model=front, handoffs=[target]).run_async("hi")
    store = TraceStore(traces.path)
    assert len(store.traces(prompt="expert", version="v9")) == len(store.traces(agent="front")) == 1


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a_tool_is_found_if_it_ran_or_was_only_requested(traces: Any, api: Any) -> None:
    async def secret() -> str:
        """Never to be called."""
        return "x"

    with OfflineServer([ScriptedToolCall("secret", {}), "no"]) as server:
        agent = Agent("a", "b", model=server.bundle(api=api), tools=[secret])
        await agent.run_async("hi", {"tool_rules": {"deny": ["secret"]}})
    found = TraceStore(traces.path).traces(tool="secret")
    # kantan-llm's tracer sees no calls in `response` spans, but the refusal has a span of its own.
    assert len(found) == 1


def test_tools_are_found_in_calls_of_both_apis_and_of_hosted_tools(
    db: SampleDatabase, store: TraceStore
) -> None:
    items: dict[str, Any] = {
        "responses": [{"type": "function_call", "name": "responses", "arguments": "{}", "call_id": "c"}],
        "chat": [{"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "chat"}}]}],
        "web_search": [
            {"type": "web_search_call", "status": "completed"},
            {"type": "message", "content": []},
        ],
        "mcp": [{"type": "mcp_call", "name": "mcp", "server_label": "s", "arguments": '{"name": "inside"}'}],
    }
    where = {}
    for name, output in items.items():
        where[name] = db.trace()
        db.span(where[name], "generation" if name == "chat" else "response", output=output)
    for name, trace_id in where.items():
        assert ids(store.traces(tool=name)) == [trace_id]
    decoy = db.trace()
    db.span(decoy, "generation", output={"name": "chat", "type": "web_search_call"})
    db.span(decoy, "custom", name="web_search", data={"name": "mcp"})
    db.span(decoy, "response", output=["chat", 5, None, {"nested": {"name": "mcp"}}])
    assert ids(store.traces(tool="chat")) == [where["chat"]]
    assert ids(store.traces(tool="mcp")) == [where["mcp"]]
    assert ids(store.traces(tool="web_search")) == [where["web_search"]]
    assert store.traces(tool="inside") == []


# Order


def test_the_newest_trace_comes_first_even_if_ids_are_random(db: SampleDatabase, store: TraceStore) -> None:
    order = ["trace_" + char * 32 for char in "3f0a9"]
    for trace_id in order:
        db.span(db.trace(trace_id, {"a": 1}), input="word")
    assert ids(store.traces()) == order[::-1]
    assert ids(store.traces(keywords=["word"], metadata={"a": 1}, limit=3)) == order[:1:-1]


# Metadata keys and values

KEYS = [
    "plain",
    "a.b",
    "a b",
    'q"uote',
    "back\\slash",
    "東京",
    "",
    "[0]",
    "$",
    "n\nl",
    "'",
    "#",
    "ä",
    "\x00",
    "%",
]


@pytest.mark.parametrize("key", KEYS)
def test_every_metadata_key_is_matched_literally(db: SampleDatabase, store: TraceStore, key: str) -> None:
    wanted = db.trace(
        metadata={**dict.fromkeys(KEYS, "other"), key: "this", "a": {"b": "this"}, "c": ["this"]}
    )
    db.trace(metadata=dict.fromkeys(KEYS, "other"))
    without = db.trace(metadata={name: "other" for name in KEYS if name != key})
    assert ids(store.traces(metadata={key: "this"})) == [wanted]
    assert ids(store.traces(metadata={key: None})) == [without]
    assert ids(store.traces(metadata={key: "this", "missing": None})) == [wanted]


VALUES: list[Any] = ["1", 1, 1.5, True, False, "true", "x'; DROP TABLE traces; --", "東京", "", -(2**63) + 1]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", ["plain", 'q"uote'])
def test_values_are_compared_by_type_and_value(
    db: SampleDatabase, store: TraceStore, key: str, value: Any
) -> None:
    stored = {db.trace(metadata={key: other}): other for other in VALUES}
    db.trace(metadata={key: [value]})
    db.trace(metadata={key: {"x": value}})
    # SQLite, like Python, treats True as 1.
    expected = {
        i
        for i, other in stored.items()
        if other == value and isinstance(other, str) == isinstance(value, str)
    }
    assert set(ids(store.traces(metadata={key: value}))) == expected


def test_a_row_with_nan_does_not_break_searches_and_is_found(db: SampleDatabase, store: TraceStore) -> None:
    broken = db.trace(metadata={"a": 1, "x": float("nan"), "y": [float("inf")]})
    sound = db.trace(metadata={"a": 1})
    db.inner_run(broken, agent_run_id="r1", score=float("nan"), prompt_name="p")
    db.judge(broken, float("nan"))
    for filters in ({"metadata": {"a": 1}}, {"metadata": {"a": 1, 'q"': None}}):
        assert ids(store.traces(**filters)) == [sound, broken]
    assert ids(store.traces(prompt="p")) == [broken]
    assert ids(store.traces(rubric_below=2.0)) == []
    assert store.trace("r1").summary.trace_id == broken
    (stats,) = store.prompts()
    assert (stats.prompt_name, stats.scores) == ("p", 0)


@pytest.mark.file_only
def test_metadata_that_is_not_an_object_does_not_break_searches(
    db: SampleDatabase, store: TraceStore
) -> None:
    for metadata in (None, [1], "text", 5):
        db.trace(metadata=metadata)
    with db.tracer._conn as connection:
        connection.execute("INSERT INTO traces VALUES('trace_bad', 'w', NULL, '{broken')")
        connection.execute("INSERT INTO traces VALUES('trace_number', 'w', NULL, 5)")
    assert len(store.traces(metadata={"a": None})) == 6
    assert store.traces(metadata={"a": 1}) == [] == store.traces(metadata={'"': 1})
    assert len(store.traces()) == 6
    assert store.prompts() == []
    assert len(list(store.export())) == 6


def test_integers_too_large_for_sqlite_are_compared_as_floats(db: SampleDatabase, store: TraceStore) -> None:
    trace_id = db.trace(metadata={'q"': 2**70, 'l"': [1]})
    assert ids(store.traces(metadata={'q"': float(2**70)})) == [trace_id]


def test_half_a_surrogate_pair_does_not_break_searches(db: SampleDatabase, store: TraceStore) -> None:
    db.trace("trace_half")
    with db.tracer._conn as connection:
        connection.execute(
            "UPDATE traces SET metadata_json = ?", ('{"a": 1, "half\\"": "\\ud83d", "\\ud83d": NaN}',)
        )
    db.inner_run("trace_half", agent_run_id="r", inner=1)
    for filters in ({"a": 1}, {"a": 1, "inner": 1}, {"a": 1, 'q"': None}, {'h"': None}):
        assert ids(store.traces(metadata=filters)) == ["trace_half"]


# Keywords


def test_keywords_are_found_ignoring_case_in_any_script(db: SampleDatabase, store: TraceStore) -> None:
    found = db.trace()
    db.span(found, input="Eine ÜBERSICHT, bitte", output="ПРИВЕТ İstanbul 東京")
    db.span(db.trace(), input="nothing of it")
    for word in ("Übersicht", "ÜBERSICHT", "übersicht", "привет", "İSTANBUL", "東京", "EINE"):
        assert ids(store.traces(keywords=[word])) == [found], word
    assert ids(store.traces(keywords=["übersicht", "東京"])) == [found]


# Invalid filters


@pytest.mark.parametrize(
    ("option", "filters"),
    [
        ("keywords", {"keywords": "word"}),
        ("keywords", {"keywords": [1]}),
        ("keywords", {"keywords": {"a"}}),
        ("keywords", {"keywords": ["\ud83d"]}),
        ("metadata", {"metadata": [("a", 1)]}),
        ("metadata", {"metadata": {1: "a"}}),
        ("metadata", {"metadata": {"a": [1]}}),
        ("metadata", {"metadata": {"a": {"b": 1}}}),
        ("metadata", {"metadata": {"a": 2**63}}),
        ("metadata", {"metadata": {"a": "\ud83d"}}),
        ("agent", {"agent": 5}),
        ("prompt", {"prompt": "p", "metadata": {"prompt_name": "q"}}),
        ("version", {"version": 2}),
        ("tool", {"tool": ["search"]}),
        ("has_error", {"has_error": 1}),
        ("has_failed", {"has_failed": "yes"}),
        ("has_denial", {"has_denial": 0}),
        ("has_cut_answer", {"has_cut_answer": "yes"}),
        ("rubric_below", {"rubric_below": "0.5"}),
        ("rubric_below", {"rubric_below": float("nan")}),
        ("rubric_below", {"rubric_below": True}),
        ("started_from", {"started_from": "2025-01-01"}),
        ("started_to", {"started_to": datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))}),
        ("limit", {"limit": 0}),
        ("limit", {"limit": -1}),
        ("limit", {"limit": True}),
        ("limit", {"limit": 2.0}),
    ],
)
def test_the_error_for_an_invalid_filter_names_it(tmp_path: Path, option: str, filters: Any) -> None:
    with open_sample(tmp_path / "t.db"):
        store = TraceStore(tmp_path / "t.db")
    for call in (store.traces, store.export):
        with pytest.raises(InvalidOptionError) as caught:
            call(**filters)
        assert caught.value.option == option


def test_giving_the_same_value_twice_is_not_an_error(db: SampleDatabase, store: TraceStore) -> None:
    trace_id = db.run(prompt_name="p")
    assert ids(store.traces(prompt="p", metadata={"prompt_name": "p"})) == [trace_id]


def test_naive_times_are_in_utc_or_in_the_default_zone_of_the_store(
    db: SampleDatabase, store: TraceStore
) -> None:
    trace_id = db.trace()
    db.span(trace_id, start=0)
    assert ids(store.traces(started_from=datetime(2025, 6, 1, 12))) == [trace_id]  # noqa: DTZ001
    assert store.traces(started_from=datetime(2025, 6, 1, 13)) == []  # noqa: DTZ001
    store.default_tz = timezone(timedelta(hours=2))
    assert ids(store.traces(started_from=datetime(2025, 6, 1, 13))) == [trace_id]  # noqa: DTZ001
    assert store.traces()[0].started_at == NOON


# Property: a search finds the same traces as a scan of all traces

WORDS = ("red", "green", "blue")
NAMES = ("plain", 'odd"key', "a.b")
SCALARS = st.sampled_from(["x", 1, True, None, 0.5])


@attrs.frozen
class Stored:
    """A trace to write."""

    metadata: dict[str, Any]
    inner: list[dict[str, Any]]
    texts: list[str]
    tools: list[str]
    scores: list[float]
    failed: bool
    recovered: bool
    refused: bool
    start: int


STORED = st.builds(
    Stored,
    metadata=st.dictionaries(st.sampled_from(NAMES), SCALARS, max_size=2),
    inner=st.lists(st.dictionaries(st.sampled_from(NAMES), SCALARS, max_size=2), max_size=2),
    texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=2).map(" ".join), min_size=1, max_size=2),
    tools=st.lists(st.sampled_from(["search", "shell"]), max_size=1),
    scores=st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=2),
    failed=st.booleans(),
    recovered=st.booleans(),
    refused=st.booleans(),
    start=st.integers(0, 3),
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "keywords": st.lists(st.sampled_from(WORDS), max_size=2),
        "metadata": st.dictionaries(st.sampled_from(NAMES), SCALARS, max_size=2),
        "tool": st.sampled_from(["search", "shell", "none"]),
        "has_error": st.booleans(),
        "has_failed": st.booleans(),
        "has_denial": st.booleans(),
        "rubric_below": st.sampled_from([0.25, 0.5, 2]),
        "started_from": st.integers(0, 4).map(lambda s: NOON + timedelta(seconds=s)),
        "limit": st.integers(1, 4),
    },
)


def passes(trace: Stored, filters: dict[str, Any]) -> bool:
    runs = [trace.metadata, *({**trace.metadata, **run} for run in trace.inner)]
    wanted = filters.get("metadata", {})
    start = filters.get("started_from", NOON)
    return (
        all(any(word in text for text in trace.texts) for word in filters.get("keywords", ()))
        and any(all(run.get(key) == value for key, value in wanted.items()) for run in runs)
        and filters.get("tool", "") in ("", *trace.tools)
        and filters.get("has_error", has_error := trace.failed or trace.recovered) == has_error
        and filters.get("has_failed", trace.failed) == trace.failed
        and filters.get("has_denial", trace.refused) == trace.refused
        and ("rubric_below" not in filters or any(score < filters["rubric_below"] for score in trace.scores))
        and NOON + timedelta(seconds=trace.start) >= start
    )


def write(database: SampleDatabase, trace: Stored) -> str:
    trace_id = database.trace(metadata=trace.metadata)
    for text in trace.texts:
        error = {"message": "gone", "data": None} if trace.failed else None
        database.span(trace_id, input=text, start=trace.start, error=error)
    if trace.recovered:
        broken = {"message": "Error running tool (non-fatal)", "data": None}
        database.span(trace_id, "custom", name="broken", data={}, start=trace.start, error=broken)
    if trace.refused:
        database.span(trace_id, "custom", name="tool_refused", data={"tool": "x"}, start=trace.start)
    for tool in trace.tools:
        database.tool(trace_id, tool, start=trace.start)
    for score in trace.scores:
        database.judge(trace_id, score, start=trace.start)
    for number, run in enumerate(trace.inner):
        database.inner_run(trace_id, start=trace.start, agent_run_id=f"{trace_id}{number}", **run)
    return trace_id


@given(
    stored=st.lists(STORED, max_size=7),
    searches=st.lists(FILTERS, min_size=1, max_size=6),
    plain=st.booleans(),
)
def test_a_search_finds_the_same_as_a_scan_of_all_traces(
    stored: Sequence[Stored], searches: Sequence[dict[str, Any]], plain: bool
) -> None:
    with (
        TemporaryDirectory() as directory,
        open_sample(Path(directory) / "t.db", indexed=not plain) as database,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(find, "_FIRST_WINDOW", 2)
        patch.setattr(find, "_GROWTH", 1)
        names = [(write(database, trace), trace) for trace in stored]
        store = TraceStore(database.path)
        for filters in searches:
            expected = [trace_id for trace_id, trace in reversed(names) if passes(trace, filters)]
            assert ids(store.traces(**filters)) == expected[: filters.get("limit", 20)]


def test_a_search_reads_no_more_traces_than_requested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window_sizes: list[int] = []
    show = find._Window.show

    def counted(self: Any, candidates: list[Any]) -> None:
        window_sizes.append(len(candidates))
        show(self, candidates)

    monkeypatch.setattr(find._Window, "show", counted)
    with open_sample(tmp_path / "t.db", indexed=True) as database:
        names = [database.trace(metadata={"team": "a"}) for _ in range(30)]
        store = TraceStore(database.path)
        assert ids(store.traces(metadata={"team": "a"}, limit=3)) == names[:-4:-1]
    assert window_sizes == [3]
