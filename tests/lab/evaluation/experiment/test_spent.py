"""What an evaluation has used in all of its starts, by runs and by judges."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from kantan_agents import Agent, Prompt, TraceStore
from kantan_agents.lab import Evaluation, evaluate, evaluate_async
from kantan_agents.lab.evaluation.evaluators import judged
from kantan_agents.lab.evaluation.experiment.spent import SPENT
from kantan_agents.testing import OfflineServer, Reply
from kantan_agents.traces.store.connection import changing, transaction
from tests.lab.evaluation.experiment.counting import words

PRICES = {"offline-model": (1.0, 1.0)}


def used(evaluation: Evaluation) -> dict[str, dict[str, int]]:
    """Return the tokens of each variant by runs and judges."""
    return {
        variant: {name: one.tokens for name, one in spent.items()}
        for variant, spent in evaluation.spent.items()
    }


def answer(request: Any) -> Any:
    """Judge, or answer."""
    if "You evaluate" in str(request.system_instructions):
        return {"score": 0.5, "comments": []}
    return "fine"


def test_runs_and_judges_are_counted_apart_and_again_after_a_reload(store: TraceStore) -> None:
    with OfflineServer(answer) as server:
        agents = {name: Agent(name, "b", model=server.bundle()) for name in ("v1", "v2")}
        judge = judged(Prompt("kind", "v1", "Be kind."), model=server.bundle())
        evaluate(agents["v1"], words("1", "2"), name="e", prices=PRICES)
        evaluate(agents, words("1", "2"), judge, name="e")
        evaluate(agents, words("1", "2"), judge, name="e")
    found = Evaluation.load(store, "e")
    assert used(found) == {"v1": {"runs": 30, "judge": 30}, "v2": {"runs": 30, "judge": 30}}
    assert found.spent["v1"]["runs"].cost == pytest.approx(30e-6)
    assert json.loads(json.dumps(found.to_dict()))["spent"]["v2"]["judge"] == {
        "input_tokens": 20,
        "output_tokens": 10,
        "cost": None,
    }


def test_attempts_that_failed_and_runs_that_were_cancelled_count(store: TraceStore) -> None:
    begun: list[anyio.Event] = []

    async def look() -> str:
        """Look; from the second time on, for ever."""
        if begun:
            begun[0].set()
            await anyio.sleep_forever()
        return "seen"

    async def cancelled() -> None:
        begun.append(anyio.Event())
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: evaluate_async(agent, words("1"), name="e"))
            await begun[0].wait()
            group.cancel_scope.cancel()

    call = {"tool": "look", "arguments": {}}
    with OfflineServer([call, Reply("no", status=400), call, "fine"]) as server:
        agent = Agent("a", "b", model=server.bundle(), tools=[look])
        assert len(evaluate(agent, words("1"), name="e").failed) == 1
        assert used(Evaluation.load(store, "e")) == {"a": {"runs": 15}}
        anyio.run(cancelled)
        assert used(Evaluation.load(store, "e")) == {"a": {"runs": 30}}
        evaluation = evaluate(agent, words("1"), name="e")
    assert (evaluation.results[0].tokens, used(evaluation)) == (15, {"a": {"runs": 45}})


def test_an_evaluation_of_an_earlier_version_counts_what_its_results_say(store: TraceStore) -> None:
    with OfflineServer(answer) as server:
        agent = Agent("a", "b", model=server.bundle())
        evaluate(agent, words("1", "2"), name="e")
        with changing(store.path) as connection, transaction(connection):
            connection.execute(f"DROP TABLE {SPENT}")
        assert used(Evaluation.load(store, "e")) == {"a": {}}
        more = evaluate(agent, words("1", "2", "3"), name="e", max_tokens=40)
        assert "30 tokens were used in all starts" in str(more.stopped)
    assert used(more) == {"a": {"runs": 30}}
