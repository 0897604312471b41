"""Limits of a run hold across processes: what was spent before a kill counts, and so does the time."""

from __future__ import annotations

from typing import Any

import pytest
from agents import ModelResponse
from openai import APIError

from kantan_agents import Agent, Middleware, ModelCall, ModelNext, ToolCall, ToolNext
from kantan_agents.middleware import Budget, Deadline, Fallback, Retry
from kantan_agents.testing import OfflineServer, RecordedRequest, Reply
from tests.durable.conftest import Scene
from tests.durable.revival import Case, KilledError, call, opened, results, revive

_HOUR = 3600.0
_THREE = {0: [call("look", "c1")], 1: [call("look", "c2")], 2: [call("look", "c3")], 3: "Done."}
_BUDGETS: dict[str, Budget] = {}


def _look(case: Case, dies_at: int = 2) -> Any:
    async def look() -> str:
        """Look."""
        case.effect("look")
        if len(case.effects) == dies_at:
            case.die()
        return "saw"

    return look


def _budget(**limits: Any) -> Any:
    def build(case: Case) -> Agent[Any]:
        _BUDGETS[case.name] = Budget(**limits)
        return case.agent(_BUDGETS[case.name], tools=[_look(case)])

    return build


def _failing(number: int, *, results_before: int = 1) -> Any:
    """Return a model whose requests fail a number of times, after a number of results."""
    failures: list[None] = []

    def reply(request: RecordedRequest) -> Any:
        if len(results(request)) == results_before and len(failures) < number:
            failures.append(None)
            return Reply("busy", status=503)
        return _THREE[len(results(request))]

    return reply


class _Dying(Middleware):
    """Kills the first process after a number of failed requests."""

    def __init__(self, case: Case) -> None:
        self.case = case

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        try:
            return await call_next(call)
        except APIError:
            if len(self.case.requests[0]) == 3:
                self.case.die()
            raise


class _Twice(Middleware):
    """Makes each call of a tool again that has failed."""

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        for _ in range(2):
            try:
                return await call_next(call)
            except ValueError:
                continue
        return "given up"


def _flaky(case: Case) -> Agent[Any]:
    async def pay() -> str:
        """Pay."""
        case.effect("pay")
        if len(case.effects) == 1:
            raise ValueError("busy")
        case.die()
        return f"paid at {len(case.effects)}"

    return case.agent(_Twice(), tools=[pay])


def _fallback(case: Case) -> Agent[Any]:
    _BUDGETS[case.name] = Budget(max_cost=100, prices={"gpt-dear": (1e6, 1e6), "*": (1, 1)})
    dear, cheap = case.server.bundle("gpt-dear"), case.server.bundle("gpt-cheap")
    return case.agent(Fallback(cheap), _BUDGETS[case.name], model=dear, tools=[_look(case)])


def _only_cheap(request: RecordedRequest) -> Any:
    if request.model == "gpt-dear":
        return Reply("busy", status=503)
    return _THREE[len(results(request))]


CASES = {
    "model_calls": Case(_budget(max_model_calls=3), _THREE),
    "tool_calls": Case(_budget(max_tool_calls=2), _THREE),
    "tokens": Case(_budget(max_tokens=10_000), _THREE),
    "per_tool": Case(_budget(per_tool={"look": 2}, max_model_calls=9), _THREE),
    "late": Case(lambda case: case.agent(Deadline(60), tools=[_look(case)]), _THREE),
    "in_time": Case(lambda case: case.agent(Deadline(60), tools=[_look(case)]), _THREE),
    "turns": Case(lambda case: case.agent(tools=[_look(case)]), _THREE, options={"max_turns": 3}),
    "retried": Case(lambda case: case.agent(Retry(4, initial_delay=0.001), tools=[_look(case)]), _failing(2)),
    "retried_in_flight": Case(
        lambda case: case.agent(Retry(4, initial_delay=0.001), _Dying(case), tools=[_look(case, 9)]),
        _failing(2),
    ),
    "fallback": Case(_fallback, _only_cheap),
    "flaky_tool": Case(_flaky, {0: [call("pay", "c1")], 1: "Done."}),
}


def _make_late(database: str) -> None:
    with opened(database) as connection:
        connection.execute(
            "UPDATE kantan_agents_durable_runs SET begun_at = begun_at - ? WHERE run_id IN "
            "(SELECT workflow_uuid FROM workflow_input WHERE inputs LIKE '%agent_\":_\"late%')",
            (_HOUR,),
        )


@pytest.fixture(scope="module", autouse=True)
def _made(tmp_path_factory: pytest.TempPathFactory) -> None:
    revive(tmp_path_factory.mktemp("limits"), CASES, between=_make_late)


@pytest.mark.parametrize(
    ("name", "error", "effects"),
    [
        ("model_calls", "[E83] Budget exceeded: 3 of 3 model calls", 4),
        ("tool_calls", "[E83] Budget exceeded: 2 of 2 tool calls", 3),
        ("turns", "Max turns (3) exceeded", 4),
    ],
)
def test_a_limit_counts_what_was_spent_before_the_kill(name: str, error: str, effects: int) -> None:
    case = CASES[name]
    assert case.status == "failed"
    assert error in (case.error or "")
    assert len(case.effects) == effects  # one was being made when the process ended
    assert len(case.requests[0]) + len(case.requests[1]) == 3


def test_tokens_of_answers_before_the_kill_count_once() -> None:
    assert CASES["tokens"].output == "Done."
    assert _BUDGETS["tokens"].used().model_calls == 4
    assert _BUDGETS["tokens"].used().tokens == 60
    assert len(CASES["tokens"].requests[1]) == 2


def test_a_tool_that_is_used_up_is_refused_after_the_kill() -> None:
    case = CASES["per_tool"]
    assert case.output == "Done."
    assert case.answers[:2] == ["saw", "saw"]
    assert "may be called 2 times, and that is used up" in case.answers[2]


def test_a_deadline_counts_the_time_without_a_process() -> None:
    assert CASES["late"].status == "failed"
    assert "[E82] Deadline exceeded: late had not finished after 60 s" in (CASES["late"].error or "")
    assert CASES["late"].requests[1] == []
    assert CASES["in_time"].output == "Done."


def test_failed_attempts_do_not_disturb_what_is_found_again() -> None:
    for name in ("retried", "retried_in_flight"):
        case = CASES[name]
        assert isinstance(case.raised, KilledError), name
        assert case.output == "Done."
    assert len(CASES["retried"].requests[0]) == 4
    assert len(CASES["retried"].requests[1]) == 2
    assert len(CASES["retried_in_flight"].requests[0]) == 3


def test_a_substitute_is_paid_as_the_substitute_that_it_was() -> None:
    case = CASES["fallback"]
    assert case.output == "Done."
    assert {request.model for request in case.requests[1]} == {"gpt-dear", "gpt-cheap"}
    assert [request.model for request in case.requests[1]].count("gpt-cheap") == 2
    assert _BUDGETS["fallback"].used().cost == pytest.approx(60 / 1e6)


def test_a_call_that_a_middleware_makes_again_is_not_answered_with_its_first_error() -> None:
    case = CASES["flaky_tool"]
    assert case.effects == ["pay", "pay", "pay"]  # failed, killed, made again
    assert case.answers == ["paid at 3"]


def test_clocks_that_differ_by_hours_do_not_matter(shared_scene: Scene) -> None:
    code = """
    import time
    real = time.time
    time.time = lambda: real() + (3600 if FIRST else -3600)

    async def look() -> str:
        "Look."
        effect("look")
        die_first()
        return "saw"

    agent = Agent("a", "Help.", model="gpt-6.1-terra", tools=[look], middleware=[Deadline(600), Durable()])
    """
    with OfflineServer([[call("look", "c1")], "Done."]) as server:
        ended = shared_scene.killed(code, server)
    assert ended["output"] == "Done."
    assert shared_scene.effects == ["look", "look"]
