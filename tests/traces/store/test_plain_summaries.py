"""The summaries that SQLite adds up: they are those that are made of the spans, and most traces have one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kantan_agents import Agent, TraceStore
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from kantan_agents.traces.store.connection import reading
from kantan_agents.traces.store.plain_summaries import read_plain
from tests.traces.store.sample_database import open_sample

RUN = '{"agent_run_id": "1", "prompt_name": "p"}'

TEXT_OR_NONE = st.sampled_from([None, "", "text", "a\x00b", "日本"])
JSON = st.sampled_from(
    [
        None,
        "null",
        "{}",
        "[]",
        "broken",
        "NaN",
        '{"total_tokens": 3}',
        '{"input_tokens": 1.5, "output_tokens": true, "total_tokens": "4"}',
        '{"input_tokens": NaN, "total_tokens": 9}',
        '{"total_tokens": 1},{"total_tokens": 2}',
        '{"total_tokens": ' + "[" * 500 + "]" * 500 + "}",
    ]
)
SPANS = st.fixed_dictionaries(
    {
        "parent_id": st.sampled_from([None, "other"]),
        "span_type": st.sampled_from([None, "generation", "custom", "response"]),
        "name": st.sampled_from([None, "judge", "agent_run"]),
        "started_at": st.sampled_from([None, "", "soon", "2025-06-01T12:00:00+00:00", "2025-06-01T13:00:00"]),
        "ended_at": st.sampled_from([None, "2025-06-01T14:00:00+00:00"]),
        "input": TEXT_OR_NONE,
        "output": TEXT_OR_NONE,
        "usage_json": JSON,
        "error_json": st.sampled_from([None, "null", "{}", '{"message": "gone"}', "broken"]),
        "rubric_json": st.sampled_from([None, '{"score": 1}']),
        "raw_json": st.sampled_from([None, '{"span_data": {"data": {"agent_run_id": "2"}}}']),
    }
)
METADATA = st.sampled_from(
    [None, "null", "{}", RUN, '{"prompt_name": 4}', '{"agent_run_id": "1", "x": NaN}', "broken"]
)

ENDING = {"span_type": "generation", "input": "q", "output": "a"}


@contextmanager
def stored(traces: list[tuple[Any, list[dict[str, Any]]]]) -> Iterator[Path]:
    """Yield a file with these traces, given as metadata and the columns of the spans."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "traces.sqlite3"
        with open_sample(path):
            pass
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            for number, (metadata, spans) in enumerate(traces):
                connection.execute(
                    "INSERT INTO traces VALUES (?, ?, ?, ?)", (f"t{number}", None, "g", metadata)
                )
                for place, span in enumerate(spans):
                    columns = {
                        **span,
                        "id": f"s{number}-{place}",
                        "trace_id": f"t{number}",
                        "ingest_seq": place,
                    }
                    connection.execute(
                        f"INSERT INTO spans({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
                        [*columns.values()],
                    )
            connection.commit()
        yield path


def plain(path: Path) -> set[str]:
    """Return the ids of the plain traces in a file."""
    store = TraceStore(path)
    with reading(path, with_views=False) as connection:
        return set(read_plain(connection, [trace.trace_id for trace in store.traces(limit=None)]))


@given(st.lists(st.tuples(METADATA, st.lists(SPANS | st.just(ENDING), max_size=4)), min_size=1, max_size=3))
@example([(RUN, [ENDING, {**ENDING, "usage_json": '{"total_tokens": 3}'}])])
@example([(RUN, [{**ENDING, "usage_json": '{"total_tokens": 3}'}, {"usage_json": '{"total_tokens": 4}'}])])
@example([(RUN, [{**ENDING, "usage_json": '{"total_tokens": NaN}'}])])
@example([(RUN, [{**ENDING, "input": None, "output": None}]), (None, [ENDING]), (RUN, [])])
def test_a_summary_is_the_same_however_it_is_made(traces: list[tuple[Any, list[dict[str, Any]]]]) -> None:
    with stored(traces) as path:
        store = TraceStore(path)
        made = {summary.trace_id: summary for summary in store.traces(limit=None)}
        assert made == {trace_id: store.trace(trace_id).summary for trace_id in made}
        assert len(made) == len(traces)


@pytest.mark.parametrize(
    ("metadata", "spans"),
    [
        ("{}", [ENDING]),
        (RUN, []),
        (RUN, [{"span_type": "response"}]),
        (RUN, [ENDING, ENDING]),
        (RUN, [ENDING, {"error_json": '{"message": "gone"}'}]),
        (RUN, [ENDING, {"span_type": "custom", "name": "judge", "rubric_json": '{"score": 1}'}]),
        (RUN, [ENDING, {"usage_json": '{"total_tokens": NaN}'}]),
    ],
)
def test_a_trace_is_not_plain_if_its_summary_needs_more(metadata: Any, spans: list[dict[str, Any]]) -> None:
    with stored([(metadata, spans)]) as path:
        assert plain(path) == set()


async def test_the_trace_of_a_run_with_a_tool_call_is_plain(traces: Any) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    with OfflineServer([ScriptedToolCall("add", {"a": 1, "b": 2}), "3"]) as server:
        await Agent("a", "b", model=server.bundle(), tools=[add]).run_async("1 + 2?")
    (summary,) = TraceStore(traces.path).traces()
    assert plain(traces.path) == {summary.trace_id}
    assert (summary.input, summary.output, summary.total_tokens) == ("1 + 2?", "3", 30)


def test_a_file_of_kantan_llm_has_plain_traces_too(tmp_path: Path) -> None:
    with open_sample(tmp_path / "traces.sqlite3", indexed=False) as database:
        trace_id = database.run("q", "a")
    assert plain(tmp_path / "traces.sqlite3") == {trace_id}


def test_a_file_that_gets_more_columns_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE traces(id TEXT PRIMARY KEY, workflow_name TEXT, group_id TEXT)")
        connection.execute(
            "CREATE TABLE spans(id TEXT PRIMARY KEY, trace_id TEXT, parent_id TEXT, started_at TEXT, "
            "ended_at TEXT, span_type TEXT, input TEXT, output TEXT, error_json TEXT, raw_json TEXT)"
        )
        connection.execute("INSERT INTO traces VALUES ('t', 'w', NULL)")
    assert TraceStore(path).traces()[0].metadata == {}
    with open_sample(path) as database:
        database.tracer._conn.execute("UPDATE traces SET metadata_json = '{\"a\": 1}'")
        database.tracer._conn.commit()
    assert TraceStore(path).traces()[0].metadata == {"a": 1}
