"""``traces copy``: from a file to Postgres, back, and to another file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent, Prompt, TraceStore, copy_traces, record_traces
from kantan_agents.errors import TraceCopyError, TraceDatabaseError
from kantan_agents.lab import Case, Dataset, evaluate, evaluator
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.postgres_server import execute
from tests.traces.store.sample_database import open_sample


def weather(city: str) -> str:
    """Say the weather."""
    return f"rain in {city}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with complete runs, and traces that only kantan-llm's tracer writes."""
    path = tmp_path / "source.sqlite3"
    recorder = record_traces(path, flush_on_sigterm=False)
    for number in range(3):
        turns = [
            [function_call("weather", '{"city": "Paris"}', call_id="call_1")],
            [assistant_message(f"Ça va, 猫 {number} \ud83d")],
        ]
        agent = Agent("a", Prompt("p", "1", "Be kind."), model=ScriptedModel(turns), tools=[weather])
        agent.run(f"question {number}")
    recorder.shutdown()
    with open_sample(path) as database:
        trace_id = database.trace(metadata={"odd": float("nan"), "zero": "a\0b"})
        database.span(trace_id, "function", name="t", input="in\0put", output="STRASSE Straße")
        database.span(database.trace(), start=None)
        database.judge(trace_id, 0.25)
    return path


def contents(place: Any) -> list[Any]:
    """Return everything that ``export`` says about a database, the oldest trace first."""
    return json.loads(json.dumps([*TraceStore(place).export()][::-1], default=str))


def without_zeros(data: Any) -> Any:
    return json.loads(json.dumps(data).replace("\\u0000", "\\u2400"))


def test_everything_comes_back(file: Path, postgres_url: str, tmp_path: Path) -> None:
    there = copy_traces(file, postgres_url)
    assert (there.traces, there.runs, there.known, there.left_out) == (5, 3, 0, [])
    assert contents(postgres_url) == without_zeros(contents(file))
    back = copy_traces(postgres_url, tmp_path / "back.sqlite3")
    assert (back.traces, back.spans, back.runs) == (5, there.spans, 3)
    assert contents(tmp_path / "back.sqlite3") == contents(postgres_url)
    assert all(TraceStore(postgres_url).trace(one["trace_id"]).is_complete for one in contents(file)[:3])
    assert TraceStore(postgres_url).prompts() == TraceStore(file).prompts()


@pytest.mark.parametrize("to_server", [False, True])
def test_a_copy_can_be_repeated_and_takes_what_is_new(
    file: Path, postgres_url: str, tmp_path: Path, to_server: bool
) -> None:
    target = postgres_url if to_server else str(tmp_path / "target.sqlite3")
    copy_traces(file, target)
    again = copy_traces(file, target)
    assert (again.traces, again.spans, again.known) == (0, 0, 5)
    with open_sample(file) as database:
        later = database.run("a later question")
        changed = TraceStore(file).traces(limit=None)[-1].trace_id
        database.span(changed, "custom", name="later")
    third = copy_traces(file, target)
    assert (third.traces, third.known) == (2, 4)
    assert TraceStore(target).trace(later).summary.input == "a later question"
    assert [span.name for span in TraceStore(target).trace(changed).spans][-1] == "later"
    assert len(contents(target)) == 6


def interrupted(limit: int) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if done >= limit:
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_copy_goes_on(file: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from kantan_agents.traces.copying import copy

    monkeypatch.setattr(copy, "PAGE", 2)
    with pytest.raises(KeyboardInterrupt):
        copy_traces(file, postgres_url, progress=interrupted(2))
    assert len(contents(postgres_url)) == 2
    seen: list[tuple[int, int]] = []
    rest = copy_traces(file, postgres_url, progress=lambda done, total: seen.append((done, total)))
    assert (rest.traces, rest.known) == (3, 2)
    assert seen == [(2, 5), (4, 5), (5, 5)]
    assert contents(postgres_url) == without_zeros(contents(file))


def test_what_is_not_copied_is_named(tmp_path: Path, postgres_url: str) -> None:
    @evaluator(version="1")
    def fine(finished: Any) -> float:
        return 1.0

    path = tmp_path / "evaluated.sqlite3"
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("x")]]))
    evaluate(agent, Dataset("d", [Case("q", id="1")]), fine, name="e", store=path)
    result = copy_traces(path, postgres_url)
    assert result.traces == 1
    assert result.left_out == ["evaluations", "scores of evaluations"]


def test_the_same_database_is_refused(file: Path, postgres_url: str) -> None:
    for place in (file, postgres_url):
        with pytest.raises(TraceCopyError, match=r"E142.*the same database"):
            copy_traces(place, place)


def test_foreign_databases_are_refused(file: Path, postgres_url: str, tmp_path: Path) -> None:
    execute(postgres_url, "CREATE TABLE orders(id int)")
    with pytest.raises(TraceDatabaseError, match="another program, with orders"):
        copy_traces(file, postgres_url)
    assert copy_traces(file, postgres_url, adopt=True).traces == 5
    with pytest.raises(TraceDatabaseError, match="E60"):
        copy_traces(tmp_path / "none.sqlite3", postgres_url)
