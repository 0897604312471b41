"""A durable run that goes on in another process: what its journal has is neither cached nor asked twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
from agents import ModelResponse

from kantan_agents import Agent, Durable, Middleware, ModelCall, ModelNext
from kantan_agents.middleware import Budget, Cache, Hedge, LimitConcurrency, MemoryStore
from tests.durable.revival import Case, call, revive

REPLIES = {0: [call("work", "c1")], 1: "Done."}


class Cached:
    """Cases whose first answer comes from a cache in the first process, and whose second process has none."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.budgets: list[Budget] = []
        self.is_primed = False

    def agent(self, case: Case) -> Agent[Any]:
        """Return the agent of a process."""
        budget = Budget(max_model_calls=2, max_tokens=10_000, on_unknown_usage="raise")
        self.budgets.append(budget)
        store = self.store if case.is_first else MemoryStore()
        return self._made(case, Cache(store, per=None), budget, Durable())

    async def begin(self, agent: Agent[Any], case: Case) -> None:
        """Fill the cache with a run that is not durable, then begin the run that is killed."""
        await self._made(case, Cache(self.store, per=None)).run_async(case.input)
        self.is_primed = True
        await agent.run_async(case.input)

    def _made(self, case: Case, *middleware: Any) -> Agent[Any]:
        def work() -> str:
            case.effect("worked")
            if self.is_primed:
                case.die()
            return "worked"

        return Agent(case.name, "Help.", model=case.server.bundle(), tools=[work], middleware=[*middleware])


def test_a_hit_is_kept_by_the_journal_and_not_asked_for_again(tmp_path: Path) -> None:
    cached = Cached()
    case = Case(cached.agent, REPLIES, begin=cached.begin)
    revive(tmp_path, {"cached": case})
    assert case.output == "Done."
    assert len(case.requests[0]) == 2  # those that have filled the cache
    # In the second process, only the call after the tool is made: the first one is in the journal.
    assert [len(request.input) for request in case.requests[1]] == [3]
    first, second = (budget.used() for budget in cached.budgets)
    assert (first.model_calls, first.tokens) == (0, 0)
    assert (second.model_calls, second.calls_without_usage) == (1, 0)


class SlowAtFirst(Middleware):
    """Makes the first request of each call slow."""

    def __init__(self) -> None:
        self.requests = 0

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        self.requests += 1
        if self.requests % 2:
            await anyio.sleep(3600)
        return await call_next(call)


def _hedged(case: Case) -> Agent[Any]:
    def work() -> str:
        case.effect("worked")
        case.die()
        return "worked"

    return case.agent(
        LimitConcurrency(2, per=None), Hedge(0.01, share=1), Durable(), SlowAtFirst(), tools=[work]
    )


def test_a_hedged_run_goes_on_with_the_answer_that_counted(tmp_path: Path) -> None:
    case = Case(_hedged, REPLIES)
    revive(tmp_path, {"hedged": case})
    assert case.output == "Done."
    assert len(case.requests[0]) == 1
    assert [len(request.input) for request in case.requests[1]] == [3]
    assert case.effects == ["worked", "worked"]
