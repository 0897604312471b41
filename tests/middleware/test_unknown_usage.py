"""What a ``Budget`` does about answers without usage, and what events and log lines say of them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import agents
import anyio
import pytest
from agents import ModelResponse, ModelSettings, Usage
from openai.types.responses import Response, ResponseIncompleteEvent, ResponseUsage

from kantan_agents import (
    Agent,
    ContentSegment,
    Middleware,
    ProviderResponse,
)
from kantan_agents.core.events import ModelCallFinished, RunFinished
from kantan_agents.errors import BudgetExceededError, InvalidOptionError, UnknownUsageError
from kantan_agents.middleware import Budget, Fallback
from kantan_agents.testing import OfflineServer, Profile, ScriptedModel, assistant_message
from tests.core.events.watched_runs import Passes

SILENT = Profile("silent", usage="never")
PRICES = {"*": (1_000_000, 1_000_000)}
streamed_or_not = pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])


async def ask(agent: Agent[Any], *, streamed: bool = False) -> list[Any]:
    """Run an agent; return its events about usage."""
    seen: list[Any] = []
    with agent.subscribe(seen.append):
        if streamed:
            async with agent.stream("Hi") as run:
                async for _ in run:
                    pass
        else:
            await agent.run_async("Hi")
    return [event for event in seen if isinstance(event, (ModelCallFinished, RunFinished))]


class Provider:
    """A provider of the protocol; ``usage`` is what it reports."""

    name = "own"

    def __init__(self, usage: dict[str, int] | None) -> None:
        self.answer = ProviderResponse(
            [ContentSegment.of_text("Hello.")], None if usage is None else {"usage": usage}
        )

    async def generate(self, prompt: str, context: Any) -> ProviderResponse:
        return self.answer

    async def stream(self, prompt: str, context: Any) -> AsyncIterator[Any]:
        yield self.answer


@streamed_or_not
@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("has_usage", [False, True], ids=["silent", "reported"])
async def test_events_distinguish_0_tokens_from_an_unknown_usage(
    api: str, streamed: bool, has_usage: bool
) -> None:
    with OfflineServer(["Hello."], profile=None if has_usage else SILENT) as server:
        call, run = await ask(Agent("a", "b", model=server.bundle(api=api)), streamed=streamed)
    assert (call.usage["requests"], call.usage["requests_without_usage"]) == (1, int(not has_usage))
    assert call.usage["total_tokens"] == run.usage["total_tokens"] == (15 if has_usage else 0)
    # SDK 0.20 does not count such a request of the Responses API, which reports usage in any case.
    assert run.usage["requests_without_usage"] == int(run.usage["requests"] == 1 and not has_usage)
    assert run.usage["requests"] == 1 or api == "responses"


@streamed_or_not
@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": 4, "output_tokens": 1}])
async def test_events_show_whether_a_provider_of_the_protocol_has_reported_usage(
    usage: dict[str, int] | None, streamed: bool
) -> None:
    call, run = await ask(Agent("a", "b", model=Provider(usage)), streamed=streamed)
    assert call.usage == run.usage
    assert call.usage["total_tokens"] == (5 if usage else 0)
    assert call.usage["requests_without_usage"] == (0 if usage else 1)


async def test_the_log_line_of_a_run_counts_requests_without_usage(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kantan_agents.run"):
        await Agent("a", "b", model=Provider(None)).run_async("Hi")
        await Agent("a", "b", model=Provider({"input_tokens": 4})).run_async("Hi")
    unknown, known = [record for record in caplog.records if record.getMessage() == "run finished"]
    assert vars(unknown)["requests_without_usage"] == 1
    assert "requests_without_usage" not in vars(known)


@streamed_or_not
async def test_a_call_without_usage_is_counted_as_such_and_costs_its_reservation(streamed: bool) -> None:
    budget = Budget(max_tokens=100, max_cost=100, prices=PRICES)
    with OfflineServer(["Hello."] * 2, profile=SILENT) as server:
        agent = Agent(
            "a",
            "b",
            model=server.bundle(api="chat"),
            middleware=[budget],
            model_settings=ModelSettings(max_tokens=40),
        )
        await ask(agent, streamed=streamed)
        await ask(agent, streamed=streamed)
        used = budget.used()
        assert (used.model_calls, used.calls_without_usage) == (2, 2)
        assert (used.input_tokens, used.output_tokens, used.tokens, used.cost) == (0, 0, 80, 80.0)
        with pytest.raises(BudgetExceededError, match="80 of 100 tokens"):
            await ask(agent, streamed=streamed)


@streamed_or_not
async def test_by_default_a_warning_says_that_a_budget_cannot_count(
    streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    budget = Budget(max_tokens=100)
    agent = Agent("a", "b", model=Provider(None), middleware=[budget])
    for _ in range(3):
        await ask(agent, streamed=streamed)
    assert [vars(record)["model"] for record in caplog.records] == ["own"]  # once for the model
    budget.reset()
    await ask(agent, streamed=streamed)
    assert len(caplog.records) == 2


@streamed_or_not
@pytest.mark.parametrize(
    ("limits", "what"),
    [({"max_tokens": 100}, "tokens"), ({"max_cost": 1, "prices": PRICES}, "cost")],
    ids=["tokens", "cost"],
)
async def test_a_budget_that_cannot_count_ends_the_run_and_stays_closed(
    limits: Any, what: str, streamed: bool
) -> None:
    budget = Budget(**limits, on_unknown_usage="raise")
    with OfflineServer(["Hello."] * 3, profile=SILENT) as server:
        agent = Agent("a", "b", model=server.bundle("llama", api="chat"), middleware=[budget])
        for _ in range(2):
            with pytest.raises(UnknownUsageError) as raised:
                await ask(agent, streamed=streamed)
            assert (raised.value.what, raised.value.model) == (what, "llama")
        assert len(server.requests) == 1  # the second run was refused before its call
        with pytest.raises(UnknownUsageError):
            await ask(Agent("c", "d", model=Provider({"input_tokens": 1}), middleware=[budget]))
        budget.reset()
        with pytest.raises(UnknownUsageError):
            await ask(agent, streamed=streamed)
        assert len(server.requests) == 2


@streamed_or_not
async def test_a_budget_that_can_count_raises_nothing(streamed: bool) -> None:
    budget = Budget(max_tokens=100, max_cost=100, prices=PRICES, on_unknown_usage="raise")
    with OfflineServer(["Hello."] * 2) as server:
        for api in ("chat", "responses"):
            agent = Agent("a", "b", model=server.bundle(api=api), middleware=[budget])
            await ask(agent, streamed=streamed)
    assert (budget.used().tokens, budget.used().calls_without_usage) == (30, 0)


@pytest.mark.parametrize(
    "limits",
    [{"max_model_calls": 5}, {"max_cost": 1, "prices": {"own": (0, 0)}}],
    ids=["calls", "free"],
)
async def test_a_limit_that_no_usage_can_change_does_not_need_it(limits: Any) -> None:
    budget = Budget(**limits, on_unknown_usage="raise")
    await ask(Agent("a", "b", model=Provider(None), middleware=[budget]))
    assert budget.used().calls_without_usage == 1


async def test_the_error_ends_the_outer_run_of_an_agent_used_as_a_tool() -> None:
    budget = Budget(max_tokens=100, on_unknown_usage="raise")
    inner = Agent("inner", "b", model=Provider(None))
    with OfflineServer([{"tool": "ask", "arguments": {"input": "Hi"}}, "Done."]) as server:
        tool = inner.sdk_agent.as_tool("ask", "Ask.")
        outer = Agent("outer", "b", model=server.bundle(), tools=[tool], middleware=[budget])
        with pytest.raises(UnknownUsageError):
            await outer.run_async("Hi")


async def test_an_answer_that_a_middleware_has_made_uses_no_tokens() -> None:
    class Cache(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> ModelResponse:
            return ModelResponse([assistant_message("Cached.")], Usage(), None)

    budget = Budget(max_tokens=100, on_unknown_usage="raise")
    agent = Agent("a", "b", model=Provider(None), middleware=[budget, Cache()])
    assert (await agent.run_async("Hi"))["result"].final_output == "Cached."
    assert budget.used().calls_without_usage == 0


async def test_a_model_that_counts_neither_requests_nor_tokens_has_no_usage() -> None:
    class Own(agents.Model):
        async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
            return ModelResponse([assistant_message("Hello.")], Usage(), None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    budget = Budget(max_tokens=100, on_unknown_usage="raise")
    with pytest.raises(UnknownUsageError):
        await Agent("a", "b", model=Own(), middleware=[budget]).run_async("Hi")


async def test_a_wrong_report_is_an_unknown_usage() -> None:
    budget = Budget(max_tokens=100, on_unknown_usage="raise")
    wrong: Any = Usage(requests=1, input_tokens=-5, output_tokens=3, total_tokens=1)
    model = ScriptedModel([ModelResponse([assistant_message("Hello.")], wrong, None)])
    with pytest.raises(UnknownUsageError):
        await Agent("a", "b", model=model, middleware=[budget]).run_async("Hi")


@pytest.mark.parametrize("order", ["budget outside", "budget inside"])
async def test_with_a_fallback_the_usage_of_the_model_that_answered_counts(order: str) -> None:
    budget = Budget(max_tokens=100, on_unknown_usage="raise")
    with OfflineServer([{"status": 503}, "Hello."]) as server:
        fallback = Fallback(server.bundle("second", api="chat"))
        layers = [budget, fallback] if order == "budget outside" else [fallback, budget]
        settings = ModelSettings(extra_headers={"x-should-retry": "false"})
        first = server.bundle("first", api="chat")
        first.client.max_retries = 0
        await ask(Agent("a", "b", model=first, middleware=layers, model_settings=settings), streamed=True)
    used = budget.used()
    assert (used.model_calls, used.tokens, used.calls_without_usage) == (1, 15, 0)


@pytest.mark.parametrize("reads", [0, 1], ids=["before the answer", "during the answer"])
async def test_a_stream_that_is_left_costs_its_reservation_once_the_answer_has_begun(
    reads: int, caplog: pytest.LogCaptureFixture
) -> None:
    budget = Budget(max_tokens=100, max_cost=100, prices=PRICES, on_unknown_usage="raise")
    with OfflineServer(["Hello. " * 1000] * 2) as server:
        agent = Agent(
            "a",
            "b",
            model=server.bundle(api="chat"),
            middleware=[budget],
            model_settings=ModelSettings(max_tokens=40),
        )
        async with agent.stream("Hi") as run:
            async for event in run:
                if event.type == ("text_delta" if reads else "model_call_started"):
                    break
        used = budget.used()
        assert (used.model_calls, used.calls_without_usage, used.tokens, used.cost) == (
            (1, 1, 40, 40.0) if reads else (0, 0, 0, 0.0)
        )
        warned = [record.getMessage() for record in caplog.records]
        assert warned == ["an answer broke off, so a budget cannot count it"] * reads
        await ask(agent)  # a call that broke off does not close the budget
    assert budget.used().calls_without_usage == used.calls_without_usage


@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_stream_without_an_answer_costs_the_usage_that_it_reports(wrapped: bool) -> None:
    class TooLong(agents.Model):
        async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
            raise NotImplementedError

        async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            usage = ResponseUsage.model_construct(input_tokens=10, output_tokens=60, total_tokens=70)
            response = Response.model_construct(id="r", output=[], usage=usage, status="incomplete")
            yield ResponseIncompleteEvent.model_construct(type="response.incomplete", response=response)

    budget = Budget(max_tokens=70, on_unknown_usage="raise")
    layers = [Passes(), budget, Passes()] if wrapped else [budget]
    agent = Agent("a", "b", model=TooLong(), middleware=layers)
    with pytest.raises(agents.ModelBehaviorError, match="incomplete"):
        await ask(agent, streamed=True)
    used = budget.used()
    assert (used.model_calls, used.input_tokens, used.output_tokens, used.tokens) == (1, 10, 60, 70)
    assert used.calls_without_usage == 0
    with pytest.raises(BudgetExceededError, match="70 of 70 tokens"):
        await ask(agent, streamed=True)


async def test_calls_in_progress_end_when_another_closes_the_budget() -> None:
    released = anyio.Event()

    class Slow(Provider):
        async def generate(self, prompt: str, context: Any) -> ProviderResponse:
            await released.wait()
            return self.answer

    budget = Budget(max_tokens=100, on_unknown_usage="raise")
    slow = Agent("a", "b", model=Slow({"input_tokens": 7}), middleware=[budget])
    async with anyio.create_task_group() as group:
        group.start_soon(slow.run_async, "Hi")
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(UnknownUsageError):
            await Agent("c", "d", model=Provider(None), middleware=[budget]).run_async("Hi")
        released.set()
    assert (budget.used().tokens, budget.used().model_calls) == (7, 2)


def test_another_choice_is_an_error() -> None:
    wrong: Any = "ignore"
    with pytest.raises(InvalidOptionError, match='on_unknown_usage: must be "warn" or "raise"'):
        Budget(max_tokens=1, on_unknown_usage=wrong)
