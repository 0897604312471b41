"""The budget of an evaluation: of its runs and of the judges that its evaluators ask."""

from __future__ import annotations

from typing import Any

import anyio

from kantan_agents import Agent, Prompt, TraceStore
from kantan_agents.errors import EvaluationBudgetError
from kantan_agents.lab import Evaluation, FinishedCase, Progress, evaluate, evaluate_async, evaluator
from kantan_agents.lab.evaluation.evaluators import judged
from kantan_agents.testing import OfflineServer
from tests.lab.evaluation.experiment.counting import length, words


def verdict(_request: Any) -> Any:
    return {"score": 0.5, "comments": ["so-so"]}


def test_a_budget_ends_an_evaluation_before_a_run_that_would_exceed_it(store: TraceStore) -> None:
    with OfflineServer(lambda _request: "fine") as server:  # 15 tokens for each answer
        agent = Agent("a", "b", model=server.bundle())
        evaluation = evaluate(agent, words(*map(str, range(6))), max_tokens=50, concurrency=4)
        assert isinstance(evaluation.stopped, EvaluationBudgetError)
        assert len(evaluation) == 3
        assert "50" in str(evaluation.stopped) and "3 of 6" in str(evaluation.stopped)
        again = evaluate(agent, words(*map(str, range(6))), max_tokens=50, concurrency=4)
        assert "45 tokens were used in all starts" in str(again.stopped)
        assert len(server.requests) == 3
        more = evaluate(agent, words(*map(str, range(6))), max_tokens=90, concurrency=4)
    assert (len(more), more.stopped) == (6, None)


def test_a_budget_too_small_for_one_case_says_what_one_takes(store: TraceStore) -> None:
    with OfflineServer(lambda _request: "fine") as server:
        agent = Agent("a", "b", model=server.bundle())
        evaluation = evaluate(agent, words("1", "2", "3"), max_tokens=5)
    assert isinstance(evaluation.stopped, EvaluationBudgetError)
    assert "one run takes up to 15" in str(evaluation.stopped)
    assert len(evaluation) == 1


def test_a_limit_of_cost_counts_money(store: TraceStore) -> None:
    with OfflineServer(lambda _request: "fine") as server:
        agent = Agent("a", "b", model=server.bundle())
        prices = {"offline-model": (1.0, 1.0)}  # 15 millionths for each answer
        evaluation = evaluate(agent, words(*map(str, range(4))), prices=prices, max_cost=0.000031)
    assert isinstance(evaluation.stopped, EvaluationBudgetError)
    assert len(evaluation) == 2


def test_judges_are_in_the_budget(store: TraceStore) -> None:
    with OfflineServer(lambda _request: "fine") as agents_server, OfflineServer(verdict) as judges_server:
        agent = Agent("a", "b", model=agents_server.bundle())
        judge = judged(Prompt("kind", "v1", "Be kind."), model=judges_server.bundle())
        done: list[Progress] = []
        evaluation = evaluate(
            agent, words(*map(str, range(8))), judge, max_tokens=70, concurrency=4, progress=done.append
        )
        # 15 tokens for each answer and 15 for each verdict.
        assert isinstance(evaluation.stopped, EvaluationBudgetError)
        assert "60 tokens were used in all starts, and one run takes up to 30" in str(evaluation.stopped)
        assert (len(evaluation), done[-1].tokens) == (2, 60)
        assert [one.tokens for one in evaluation.results] == [15, 15]
        more = evaluate(agent, words(*map(str, range(8))), judge, max_tokens=240, concurrency=4)
    assert (len(more), more.stopped) == (8, None)


def test_a_judge_of_stored_results_is_in_the_budget(store: TraceStore) -> None:
    with OfflineServer(lambda _request: "fine") as agents_server, OfflineServer(verdict) as judges_server:
        agent = Agent("a", "b", model=agents_server.bundle())
        cases = words(*map(str, range(6)))
        assert len(evaluate(agent, cases, name="stored")) == 6
        judge = judged(Prompt("kind", "v1", "Be kind."), model=judges_server.bundle())
        some = evaluate(agent, cases, judge, name="stored", max_tokens=140, concurrency=4)
        assert isinstance(some.stopped, EvaluationBudgetError)
        assert len(judges_server.requests) == 3
        rest = evaluate(agent, cases, judge, name="stored", max_tokens=190, concurrency=4)
    assert rest.stopped is None
    assert (len(agents_server.requests), len(judges_server.requests)) == (6, 6)
    assert all("judge" in one.scores for one in rest.results)


def test_an_agent_that_a_custom_evaluator_asks_is_in_the_budget_too(store: TraceStore) -> None:
    with OfflineServer(lambda _request: "fine") as server:
        agent, other = (Agent(name, "b", model=server.bundle()) for name in ("a", "other"))

        async def polite(finished: FinishedCase) -> float:
            await other.run_async(finished.text)
            return 1.0

        evaluation = evaluate(agent, words(*map(str, range(6))), polite, max_tokens=70, concurrency=1)
    assert isinstance(evaluation.stopped, EvaluationBudgetError)
    assert len(evaluation) == 2


def test_a_judge_without_a_price_ends_a_budget_of_money_with_a_reason(store: TraceStore) -> None:
    with OfflineServer(lambda _request: "fine") as agents_server, OfflineServer(verdict) as judges_server:
        agent = Agent("a", "b", model=agents_server.bundle())
        judge = judged(Prompt("kind", "v1", "Be kind."), model=judges_server.bundle("dear"))
        prices = {"offline-model": (1.0, 1.0)}
        evaluation = evaluate(agent, words("1", "2"), judge, prices=prices, max_cost=1.0)
        assert "a model that was asked has no price" in str(evaluation.stopped)
        priced = evaluate(agent, words("1", "2"), judge, prices={**prices, "dear": (1.0, 1.0)}, max_cost=1.0)
    assert (len(priced), priced.stopped) == (2, None)


def test_two_evaluations_at_once_count_their_own_tokens(store: TraceStore) -> None:
    async def both() -> tuple[Evaluation, Evaluation]:
        found: dict[str, Evaluation] = {}

        async def one(name: str) -> None:
            found[name] = await evaluate_async(agent, words("1", "2", "3"), name=name)

        async with anyio.create_task_group() as group:
            group.start_soon(one, "x")
            group.start_soon(one, "y")
        return found["x"], found["y"]

    with OfflineServer(lambda _request: "fine") as server:
        agent = Agent("a", "b", model=server.bundle())
        evaluations = anyio.run(both)
    assert [[one.tokens for one in found.results] for found in evaluations] == [[15] * 3] * 2


def test_a_judge_that_was_not_asked_yet_is_asked_alone(store: TraceStore) -> None:
    def answer(request: Any) -> Any:
        question = request.input[-1]["content"]
        return {"status": 400, "text": "no"} if question == "0" else "fine"

    with OfflineServer(answer) as agents_server, OfflineServer(verdict) as judges_server:
        agent = Agent("a", "b", model=agents_server.bundle())
        judge = judged(Prompt("kind", "v1", "Be kind."), model=judges_server.bundle())
        done: list[Progress] = []
        # The first run fails, so that nobody judges it.
        evaluate(
            agent, words(*map(str, range(12))), judge, max_tokens=100, concurrency=8, progress=done.append
        )
    assert done[-1].tokens == 90


def test_code_scores_stored_results_whatever_is_left(store: TraceStore) -> None:
    with OfflineServer(lambda _request: "fine") as agents_server, OfflineServer(verdict) as judges_server:
        agent = Agent("a", "b", model=agents_server.bundle())
        judge = judged(Prompt("kind", "v1", "Be kind."), model=judges_server.bundle())
        cases = words(*map(str, range(4)))
        some = evaluate(agent, cases, judge, name="stored", max_tokens=60, concurrency=1)
        assert len(some) == 2
        evaluate(agent, cases, name="stored")
        # Two results lack the judge's score, and all lack that of the code.
        more = evaluate(agent, cases, [judge, length], name="stored", max_tokens=105, concurrency=4)
        assert "105 tokens were used in all starts, and the judges of one result take up to 15" in str(
            more.stopped
        )
        assert "4 of 4 runs are kept, some of them without all scores" in str(more.stopped)
        assert sum("length" in one.scores for one in more.results) == 3
        last = evaluate(agent, cases, [judge, length], name="stored", max_tokens=120, concurrency=4)
    assert last.stopped is None
    assert (len(agents_server.requests), len(judges_server.requests)) == (4, 4)


def test_a_judge_of_ones_own_that_uses_no_agent_does_not_slow_an_evaluation_down(store: TraceStore) -> None:
    running, most = 0, 0

    async def slow(_finished: FinishedCase) -> float:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.05)
        running -= 1
        return 1.0

    own = evaluator(slow, name="own", version="1", source="model")
    with OfflineServer(lambda _request: "fine") as server:
        agent = Agent("a", "b", model=server.bundle())
        evaluate(agent, words(*map(str, range(6))), own, max_tokens=1_000, concurrency=5)
    assert most > 1
