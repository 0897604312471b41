"""The page, labels, openings of held-out cases, and a replay cohort over Postgres."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kantan_agents import Agent, Prompt, TraceStore, copy_traces, record_traces
from kantan_agents.lab import Change, Cohort, Evaluation, LabelQueue, labels_of, replay_cohort
from kantan_agents.lab.improve.openings import next_opening, open_held_out
from kantan_agents.page import traces_app
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.traces.database_url import as_place
from tests.lab.evaluation.labels.shop import evaluate_shop, label_all, plain
from tests.page.sample import make
from tests.traces.postgres.conftest import Start


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "traces.sqlite3"
    make(path)
    return path


def test_the_page_shows_what_it_shows_of_a_file(file: Path, postgres_url: str) -> None:
    copy_traces(file, postgres_url)
    traces = [trace.trace_id for trace in TraceStore(file).traces(limit=None)]
    paths = [
        "runs",
        "runs?words=refund",
        "runs?errors=any",
        "choices",
        "prompts",
        "prompts/versions?name=help",
    ]
    paths += [f"run/{trace_id}" for trace_id in traces]
    paths += [f"diff/{traces[0]}/{traces[1]}", "comparisons", "labels", "prompts/scores?name=help"]

    def answers(store: Any) -> list[Any]:
        with TestClient(traces_app(store), base_url="http://127.0.0.1") as client:
            found = [client.get(f"/api/{path}") for path in paths]
            assert client.get("/api/version").status_code == 200
        return [(path, one.status_code, one.json()) for path, one in zip(paths, found, strict=True)]

    of_file, of_server = answers(file), answers(postgres_url)
    assert {status for _, status, _ in of_file} == {200}
    assert of_server == of_file


def test_people_label_the_results_of_an_evaluation(postgres_url: str) -> None:
    evaluate_shop(as_place(postgres_url), 6, repeats=2)
    evaluation = Evaluation.load(TraceStore(postgres_url), "shop")
    assert len(evaluation["v1"]) == 12
    label_all(LabelQueue.of(evaluation, "helpful", by="Mia"))
    again = Evaluation.load(TraceStore(postgres_url), "shop")
    labels = labels_of(again, "helpful")
    assert (len(plain(labels)), {one.by for one in labels}) == (24, {"Mia"})
    assert len(LabelQueue.of(again, "helpful", by="Mia")) == 0


def test_openings_of_sealed_cases_are_counted(postgres_url: str, start: Start) -> None:
    recorder = start(postgres_url)
    assert recorder.force_flush(10)
    path = as_place(postgres_url)
    assert next_opening(path, ["a"]).number == 1
    assert open_held_out(path, "one", "p", ["a", "b"]).number == 1
    assert open_held_out(path, "one", "p", ["a", "b"]).number == 1
    assert open_held_out(path, "two", "p", ["b"]).number == 2
    assert next_opening(path, ["c"]).number == 1


def test_a_cohort_is_run_again_and_its_results_are_kept(postgres_url: str) -> None:
    def agent(model: ScriptedModel) -> Agent[Any]:
        return Agent("a", Prompt("p", "1", "Be brief."), model=model)

    recorder = record_traces(postgres_url, flush_on_sigterm=False)
    for number in range(3):
        agent(ScriptedModel([[assistant_message(f"answer {number}")]])).run(f"question {number}")
    cohort = Cohort.select(TraceStore(postgres_url), prompt="p")
    model = ScriptedModel(lambda _call: "another answer")
    first = replay_cohort(cohort, agent(model), Change.settings(temperature=0.3), name="warmer")
    assert len(first.runs) == 3
    calls = len(model.calls)
    again = replay_cohort(cohort, agent(model), Change.settings(temperature=0.3), name="warmer")
    assert (len(again.runs), len(model.calls)) == (3, calls)
    recorder.shutdown()
