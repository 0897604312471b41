"""Evaluations, labels, a cohort, a rollout and a search of the older layout go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import TraceStore, record_traces
from kantan_agents.lab import (
    Change,
    Cohort,
    Dataset,
    Evaluation,
    evaluate,
    history,
    improve,
    labels_of,
    promote,
    replay_cohort,
    status,
)
from kantan_agents.lab.evaluation import evaluators
from kantan_agents.testing import OfflineServer
from tests.old_layout import shop
from tests.old_layout.conftest import Copied, Shown


@pytest.fixture
def place(copied: Copied) -> Path:
    return copied("traces.db")


def evaluated(server: OfflineServer, place: Path, dataset: Dataset, name: str) -> Evaluation:
    return evaluate(
        {"v1": shop.greeter(server), "v2": shop.greeter(server, shop.POLITE, "v2")},
        dataset,
        [shop.is_polite, shop.length],
        name=name,
        store=place,
    )


def test_a_finished_evaluation_is_shown_and_compared(place: Path, shown: Shown) -> None:
    whole = json.loads(shown("eval", "show", "finished", "--db", place, "--json"))
    assert len(whole["results"]) == 6
    compared = shown("eval", "compare", "v1", "v2", "--evaluation", "finished", "--db", place)
    assert "better: o0, 0 (" in compared
    assert "is_polite: cannot tell, the difference is 1" in compared
    judged = shown("eval", "judge", "finished", "--metric", "is_polite", "--db", place)
    assert "6 results with a score and a label" in judged
    (evaluation,) = [one for one in Evaluation.load_all(TraceStore(place)) if one.name == "finished"]
    assert {(one.by, one.value) for one in labels_of(evaluation)} == {("Aiko", 0.0), ("Aiko", 1.0)}


def test_scores_are_found_by_the_versions_that_evaluators_had(
    server: OfflineServer, facts: dict[str, Any]
) -> None:
    assert shop.versions(server, evaluators) == facts["versions"]


def test_a_finished_evaluation_asks_nothing_again(place: Path, copied: Copied, server: OfflineServer) -> None:
    dataset = Dataset.load(copied("orders.jsonl"))
    again = evaluated(server, place, dataset, "finished")
    assert server.requests == []
    assert (again["v1"].mean("is_polite"), again["v2"].mean("is_polite")) == (0, 1)


def test_an_interrupted_evaluation_makes_what_is_missing(
    place: Path, copied: Copied, server: OfflineServer, facts: dict[str, Any]
) -> None:
    dataset = Dataset.load(copied("orders.jsonl"))
    (before,) = [one for one in Evaluation.load_all(TraceStore(place)) if one.name == "interrupted"]
    assert len(before) == facts["results"] - 6
    recorder = record_traces(place)
    evaluation = evaluated(server, place, dataset, "interrupted")
    recorder.shutdown()
    assert (len(evaluation), len(evaluation.failed)) == (6, 0)
    assert len(server.requests) == 6 - len(before)
    assert {one.trace_id for one in before.results} < {one.trace_id for one in evaluation.results}


def test_a_replayed_cohort_asks_nothing_again(
    place: Path, server: OfflineServer, facts: dict[str, Any]
) -> None:
    cohort = Cohort.of(TraceStore(place), facts["cohort"])
    experiment = replay_cohort(cohort, shop.greeter(server), Change.prompt(shop.POLITE), name="politely")
    assert server.requests == []
    assert [run.status for run in experiment.runs] == ["wording", "wording"]


def test_a_rollout_goes_on_with_the_arms_that_units_had(
    place: Path, server: OfflineServer, facts: dict[str, Any], shown: Shown
) -> None:
    assert [(one.action, one.author, one.share) for one in history("shy", place)] == [
        ("start", "code", 0.5),
        ("promote", "Mia", 0.8),
    ]
    now = status("shy", place)
    assert [(arm.name, arm.units, arm.mean_score) for arm in now.arms] == [("v1", 2, 0.5), ("v2", 4, 0.5)]
    assert "cannot tell yet whether v2 is better than v1" in shown("rollout", "status", "shy", "--db", place)
    recorder = record_traces(place)
    agent = shop.shy(server, place)
    for unit in facts["arms"]:
        agent.run(f"Hello, {unit}", {"customer": unit})
    recorder.shutdown()
    runs = [one for one in TraceStore(place).traces(agent="shy") if "user" in str(one.input)]
    assert {(one.metadata["arm"], one.metadata["arm_share"]) for one in runs} <= {("v1", 0.2), ("v2", 0.8)}
    drawn = {str(one.input).split()[-1]: one.metadata["arm"] for one in runs}
    assert drawn.keys() == facts["arms"].keys()
    # The share of v2 has grown, so units may have changed to it. None went back.
    assert all(drawn[unit] == "v2" for unit, arm in facts["arms"].items() if arm == "v2")
    assert promote("shy", place, by="Mia").status == "promoted"


def test_a_search_that_was_killed_goes_on(
    copied: Copied, place: Path, server: OfflineServer, facts: dict[str, Any]
) -> None:
    folder = copied("greeting-improve")
    recorder = record_traces(place)
    found = improve(
        shop.greeter(server),
        TraceStore(place),
        judge=shop.critic(server),
        rounds=1,
        split=(0.3, 0.2, 0.5),
        concurrency=1,
        out=folder,
    )
    recorder.shutdown()
    assert found.new is not None
    assert found.new.text == shop.POLITE
    # Five requests were answered before the kill, and the sixth was not.
    assert len(server.requests) == facts["requests_of_search"] - 5
