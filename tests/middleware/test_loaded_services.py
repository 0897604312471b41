"""``Cache``, ``LimitConcurrency`` and ``Hedge`` together with all other middleware."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pydantic
import pytest
from agents import Agent as SDKAgent

from kantan_agents import Agent, AgentDefinition, task_tool
from kantan_agents.errors import RedactedContentBlockedError
from kantan_agents.middleware import (
    Budget,
    Cache,
    Deadline,
    Fallback,
    Hedge,
    LimitConcurrency,
    Redact,
    Retry,
    ToolErrors,
)
from kantan_agents.testing import ScriptedModel, function_call


class Out(pydantic.BaseModel):
    text: str


class Service:
    """An agent with everything, and the middleware whose counts are of interest."""

    def __init__(self, model: Any, **options: Any) -> None:
        self.cache = Cache()
        self.budget = Budget(max_model_calls=10_000, max_tokens=10_000_000)
        self.limit = LimitConcurrency(3)
        self.runs = LimitConcurrency(100, of="runs")
        self.hedge = Hedge(0.0, share=1)
        self.agent: Agent[Any] = Agent(
            "service",
            "Help.",
            model=model,
            middleware=[
                Deadline(60),
                self.runs,
                Redact(restore=True),
                ToolErrors(),
                self.cache,
                self.budget,
                Retry(),
                Fallback(model),
                self.limit,
                self.hedge,
            ],
            **options,
        )

    async def ask(self, text: str, tenant: str = "a", *, streamed: bool = False) -> str:
        if not streamed:
            return str((await self.agent.run_async(text, {"tenant": tenant}))["result"].final_output)
        async with self.agent.stream(text, {"tenant": tenant}) as stream:
            async for _ in stream:
                pass
        return str(stream.context["result"].final_output)

    def is_idle(self) -> bool:
        """Whether nothing is left of what has run."""
        counts = [limit.stats() for limit in (self.limit, self.runs)]
        return (
            all((stats.running, stats.waiting, stats.keys) == (0, 0, {}) for stats in counts)
            and self.cache._flights.count == 0
            and self.budget._ledger.in_progress == 0
        )


async def _slowly(call: Any) -> str:
    await anyio.lowlevel.checkpoint()
    return f"Answer to {call.input[-1]['content']}."


async def test_many_runs_at_once_get_their_own_answers() -> None:
    service = Service(ScriptedModel(_slowly))
    answers: dict[int, str] = {}

    async def ask(number: int) -> None:
        question, tenant = f"{number % 10}", "abc"[number % 3]
        answers[number] = await service.ask(question, tenant, streamed=number % 2 == 0)

    async with anyio.create_task_group() as group:
        for number in range(120):
            group.start_soon(ask, number)
    assert answers == {number: f"Answer to {number % 10}." for number in range(120)}
    assert service.is_idle()
    stats = service.cache.stats()
    assert stats.misses == service.budget.used().model_calls == 30
    assert stats.hits + stats.shared == 90


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_whatever_is_cancelled_whenever_leaves_nothing_behind(seed: int) -> None:
    service, draw = Service(ScriptedModel(_slowly)), random.Random(seed)

    async def ask(number: int) -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_later, scope, draw.randrange(60))
                await service.ask(f"{number % 5}", "ab"[number % 2], streamed=number % 3 == 0)
                scope.cancel()

    async with anyio.create_task_group() as group:
        for number in range(80):
            group.start_soon(ask, number)
    assert service.is_idle()
    assert await service.ask("more") == "Answer to more."


async def _cancel_later(scope: anyio.CancelScope, steps: int) -> None:
    for _ in range(steps):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


async def test_a_reader_who_leaves_a_stream_leaves_nothing_behind() -> None:
    service = Service(ScriptedModel(_slowly))
    for number in range(5):
        async with service.agent.stream(str(number), {"tenant": "a"}) as stream:
            async for event in stream:
                if event.type == "model_call_started":
                    break
    assert service.is_idle()


async def test_structured_output() -> None:
    service = Service(ScriptedModel(lambda _: {"text": "right"}), output_type=Out)
    assert [await service.ask("q", streamed=streamed) for streamed in (False, True, False)] == [
        "text='right'"
    ] * 3
    assert service.cache.stats().hits == 2


def _replies(*names: str) -> ScriptedModel:
    """Return a model that calls a tool of each name in turn, and then answers."""

    def answer(call: Any) -> Any:
        done = sum(item.get("type") == "function_call_output" for item in call.input)
        if done < len(names):
            arguments = {"subagent_type": "child", "prompt": "p", "description": "d", "input": "i"}
            return [function_call(names[done], arguments, call_id=f"c{done}")]
        return "Done."

    return ScriptedModel(answer)


async def test_delegation_is_for_the_same_tenant_and_needs_no_further_place() -> None:
    tool = task_tool([AgentDefinition("child", "helps", "You help.")])
    service = Service(_replies("Task"), tools=[tool])
    with anyio.fail_after(20):
        for tenant in ("a", "b", "a"):
            assert await service.ask("q", tenant) == "Done."
    assert service.is_idle()
    # The calls of one tenant, which are as many as those of the other one, are stored when it asks again.
    assert service.cache.stats().hits == service.cache.stats().misses // 2


async def test_hand_offs_and_agents_as_tools() -> None:
    other = SDKAgent("other", model=ScriptedModel(lambda _: "From the other."))
    helper = SDKAgent("helper", model=ScriptedModel(lambda _: "Helped."))
    service = Service(
        _replies("helper", "transfer_to_other"),
        tools=[helper.as_tool("helper", "helps")],
        handoffs=[other],
    )
    with anyio.fail_after(20):
        assert [await service.ask("q") for _ in range(2)] == ["From the other."] * 2
    assert service.is_idle()
    assert service.cache.stats().hits == service.cache.stats().misses == 4


async def test_blocked_contents_are_neither_stored_nor_shared() -> None:
    cache = Cache()
    model = ScriptedModel(lambda _: "Write to aiko@example.com.")
    agent = Agent("a", "x", model=model, middleware=[Redact(mode="block"), cache])
    for _ in range(2):
        with pytest.raises(RedactedContentBlockedError):
            await agent.run_async("q", {"tenant": "a"})
    assert (cache.stats().hits, len(model.calls)) == (0, 2)
