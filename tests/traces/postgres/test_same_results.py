"""A file and Postgres find the same traces for the same searches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kantan_agents import TraceStore
from kantan_agents.traces.store import find_in_server
from kantan_agents.traces.store.connection import reading
from kantan_agents.traces.store.store_figures import keep_changed
from tests.postgres_server import execute
from tests.traces.store.sample_database import NOON, SampleDatabase
from tests.traces.store.server_sample import ServerSample, open_server_sample

PIECES = [
    "a",
    "B",
    "ab",
    "straße",
    "STRASSE",
    "Ünï",
    "ünï",
    "猫",
    "猫と犬",
    "ﾈｺ",
    "İ",
    "\N{LATIN SMALL LETTER DOTLESS I}",
    "ς",
    "Σ",
    "📦",
    "👩‍🚀",
]
MARKS = ["%", "_", "\\", "'", '"', "%%", "''", "\n", "␀", "$", "{", "?", ":a", " "]
words = st.lists(st.sampled_from([*PIECES, *MARKS]), min_size=1, max_size=3).map("".join)
texts = st.one_of(words, st.lists(words, max_size=4).map(" ".join), st.none())
values = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1.0, -2.0]), words)
KEYS = ["agent_name", "prompt_name", "prompt_version", "k", "a.b", "é", "x y"]
metadata = st.dictionaries(st.sampled_from(KEYS), values, max_size=3)
runs = st.lists(st.tuples(texts, texts, metadata, st.integers(0, 8)), min_size=1, max_size=6)
filters = st.fixed_dictionaries(
    {},
    optional={
        "keywords": st.lists(words, min_size=1, max_size=2),
        "metadata": metadata,
        "tool": st.sampled_from(["search", "refund", "web"]),
        "has_error": st.booleans(),
        "has_failed": st.booleans(),
        "has_denial": st.booleans(),
        "has_cut_answer": st.booleans(),
        "rubric_below": st.sampled_from([0.0, 0.5, 1.0]),
        "started_from": st.just(NOON),
        "started_to": st.just(NOON),
        "limit": st.sampled_from([1, 2, None]),
    },
)


# Forms that the translation has to keep, on the columns of spans.
FORMS = (
    "SELECT name FROM main.spans ORDER BY name, id",
    "SELECT name FROM main.spans ORDER BY name DESC, id DESC",
    "SELECT id FROM main.spans WHERE name IS :word ORDER BY id",
    "SELECT id, substr(input, 1, length('ab')) FROM spans WHERE input LIKE ? AND instr(input, ?) ORDER BY id",
    "SELECT LOWER(COALESCE(input, '')), LENGTH(CAST(output AS BLOB)) FROM spans ORDER BY id",
    "SELECT t.id, COUNT(*) FROM traces t CROSS JOIN spans s ON s.trace_id = t.id GROUP BY t.id ORDER BY t.id",
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> Iterator[ServerSample]:
    from tests.postgres_server import fresh_database

    with fresh_database(postgres_server) as url:
        path = tmp_path_factory.mktemp("same") / "file.sqlite3"
        with open_server_sample(path, url) as sample:
            yield sample


def clear(sample: ServerSample) -> None:
    execute(sample.path.secret, "DELETE FROM spans; DELETE FROM traces")
    connection = sample.tracer._conn
    assert connection is not None
    with connection:
        connection.execute("DELETE FROM spans")
        connection.execute("DELETE FROM traces")


def fill(sample: SampleDatabase, drawn: Any) -> None:
    for question, answer, data, kind in drawn:
        trace_id = sample.trace(metadata=data or None)
        error = {"message": "broken", "data": None} if kind == 1 else None
        sample.span(trace_id, input=question, output=answer, error=error)
        if kind == 2:
            sample.tool(trace_id, "search")
        elif kind == 3:
            sample.judge(trace_id, 0.25)
        elif kind == 4:
            sample.span(trace_id, "custom", name="tool_rules", data={"tool": "refund"})
            sample.span(trace_id, "custom", name="tool_refused", data={"tool": "refund"})
        elif kind == 5:
            sample.inner_run(trace_id, agent_name="ab", k=1)
        elif kind == 6:
            calls = [{"type": "web_call", "id": "1"}, {"name": "search", "arguments": '{"name": "refund"}'}]
            sample.span(trace_id, "response", input="q", output=calls, start=-5)
        elif kind == 7:
            sample.span(trace_id, "custom", name="answer_cut_off", data={"finish_reason": "length"})
        elif kind == 8:
            call = {"type": "function_call", "name": "search", "arguments": '{"name": "refund"}'}
            streamed = [{"object": "response", "output": [call]}]
            sample.span(trace_id, "generation", input="q", output=streamed, start=-5)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(drawn=runs, word=words)
def test_a_statement_means_the_same(both: ServerSample, drawn: Any, word: str) -> None:
    clear(both)
    fill(both, drawn)
    with reading(both.file) as file, reading(both.path) as server:
        for sql in FORMS:
            given: Any = {"word": word} if ":word" in sql else [f"%{word}%", word][: sql.count("?")]
            rows = [[tuple(row) for row in one.execute(sql, given)] for one in (file, server)]
            assert rows[0] == rows[1]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(drawn=runs, searches=st.lists(filters, min_size=1, max_size=6))
def test_both_find_the_same(both: ServerSample, drawn: Any, searches: list[dict[str, Any]]) -> None:
    clear(both)
    fill(both, drawn)
    file, server = TraceStore(both.file), TraceStore(both.path)
    for search in searches:
        assert server.traces(**search) == file.traces(**search)
    assert server.prompts() == file.prompts()
    keep_changed(both.path, 60)
    assert execute(both.path.secret, "SELECT count(*) FROM kantan_agents_changed") == [(0,)]
    assert server.prompts() == file.prompts()
    plan: dict[str, Any] = {"older_than": timedelta(days=1), "dry_run": True}
    assert server.prune(**plan).traces == file.prune(**plan).traces
    assert [*server.export()] == [*file.export()]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(drawn=runs, searches=st.lists(st.lists(words, min_size=1, max_size=2), min_size=1, max_size=4))
def test_the_index_names_every_trace_that_a_search_finds(
    both: ServerSample, drawn: Any, searches: list[list[str]]
) -> None:
    """With the extension by its index; without it, the same statements read all texts."""
    clear(both)
    fill(both, drawn)
    file, server = TraceStore(both.file), TraceStore(both.path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(find_in_server, "has_trigrams", lambda _server: True)
        patch.setattr(find_in_server, "_FIRST_WINDOW", 1)
        patch.setattr(find_in_server, "_BEFORE_INDEX", 1)
        for keywords in searches:
            assert server.traces(keywords=keywords) == file.traces(keywords=keywords)


def test_a_zero_character_is_the_symbol_for_it(both: ServerSample) -> None:
    """Postgres cannot store it. A file ends a text there, so that it is the one that finds less."""
    clear(both)
    trace_id = both.trace()
    both.span(trace_id, input="before\0after", output="x")
    server = TraceStore(both.path)
    for word in ("before", "after", "before\0after", "e\N{SYMBOL FOR NULL}a"):
        assert [trace.trace_id for trace in server.traces(keywords=[word])] == [trace_id]


def test_more_traces_than_a_window_are_found_in_order(both: ServerSample, tmp_path: Path) -> None:
    clear(both)
    for number in range(40):
        both.run("needle" if number % 13 == 0 else f"hay {number}", number=number)
    file, server = TraceStore(both.file), TraceStore(both.path)
    for limit in (1, 2, 3, None):
        assert server.traces(keywords=["needle"], limit=limit) == file.traces(
            keywords=["needle"], limit=limit
        )
    page = server.traces(limit=15)
    rest = server.traces(limit=None, before=page[-1].trace_id)
    assert [*page, *rest] == file.traces(limit=None)
