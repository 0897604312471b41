from __future__ import annotations

import asyncio
import math
import sys
import threading
from contextlib import nullcontext
from typing import Any

import anyio
import attrs
import pytest
from agents import Agent as SDKAgent
from agents import ModelResponse, ModelSettings, Usage
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, ModelCall, Run, ToolCall
from kantan_agents.errors import BudgetExceededError, InvalidOptionError
from kantan_agents.middleware import Budget, BudgetUse, Fallback
from kantan_agents.testing import (
    ModelStep,
    OfflineServer,
    Reply,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)


class Priced(ScriptedModel):
    """A scripted model with a name, for the price list."""

    def __init__(self, steps: Any, name: str = "small") -> None:
        super().__init__(steps)
        self.name = name


def spending(output: Any, read: int = 10, written: int = 5) -> ModelStep:
    usage = Usage(requests=1, input_tokens=read, output_tokens=written, total_tokens=read + written)
    return ModelStep(output=output, usage=usage)


def look() -> str:
    return "seen"


def glance() -> str:
    return "glanced"


def looking(times: int, tool: str = "look", **usage: int) -> Priced:
    """Return a model that calls a tool once per turn, ``times`` times, and then answers."""
    steps = [spending([function_call(tool, {}, call_id=f"c{number}")], **usage) for number in range(times)]
    return Priced([*steps, spending([assistant_message("Done.")], **usage)])


async def run(model: Any, budget: Budget, **options: Any) -> dict[str, Any]:
    agent = Agent("a", "x", model=model, tools=[look, glance], middleware=[budget], **options)
    return await agent.run_async("Go")


async def test_usage_is_counted() -> None:
    budget = Budget(max_model_calls=9, prices={"small": (1_000_000, 2_000_000)})
    await run(looking(2), budget)
    assert budget.used() == BudgetUse(
        model_calls=3,
        tool_calls=2,
        input_tokens=30,
        output_tokens=15,
        tokens=45,
        cost=60.0,
        per_tool={"look": 2},
    )
    budget.reset()
    assert budget.used() == BudgetUse()


async def test_used_returns_a_copy() -> None:
    budget = Budget(max_model_calls=9)
    await run(looking(1), budget)
    before = budget.used()
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        before.tokens = 0  # type: ignore[misc]
    before.per_tool["look"] = 99  # type: ignore[index]
    assert budget.used().per_tool == {"look": 1}


async def test_no_more_model_calls_are_made_than_allowed() -> None:
    model, budget = looking(5), Budget(max_model_calls=2)
    with pytest.raises(BudgetExceededError) as caught:
        await run(model, budget)
    error = caught.value
    assert (error.code, error.what, error.limit, error.used) == ("E83", "model calls", 2, 2)
    assert len(model.calls) == 2
    assert error.kantan_run is not None  # type: ignore[attr-defined]


async def test_no_more_tool_calls_are_made_than_allowed_and_the_run_ends() -> None:
    model, budget = looking(5), Budget(max_tool_calls=2)
    with pytest.raises(BudgetExceededError, match="tool calls"):
        await run(model, budget)
    assert len(model.calls) == 3
    assert budget.used().tool_calls == 2


async def test_no_call_is_made_after_the_tokens_are_used_up() -> None:
    model, budget = looking(5), Budget(max_tokens=30)
    with pytest.raises(BudgetExceededError, match="30 of 30 tokens"):
        await run(model, budget)
    assert len(model.calls) == 2


async def test_a_call_reserves_the_max_tokens_of_its_settings() -> None:
    model, budget = looking(5), Budget(max_tokens=100)
    with pytest.raises(BudgetExceededError) as caught:
        await run(model, budget, model_settings=ModelSettings(max_tokens=80))
    assert caught.value.used == 30  # 30 + 80 is more than 100
    assert len(model.calls) == 2


async def test_the_cost_is_limited_by_the_prices_given() -> None:
    model = looking(5)
    budget = Budget(max_cost=0.03, prices={"*": (1000.0, 1000.0)})
    with pytest.raises(BudgetExceededError, match="cost"):
        await run(model, budget)
    assert len(model.calls) == 2
    assert budget.used().cost == pytest.approx(0.03)


async def test_a_model_without_a_price_is_refused_where_cost_is_limited() -> None:
    model = Priced([[assistant_message("Done.")]], name="unheard-of")
    with pytest.raises(InvalidOptionError, match="unheard-of"):
        await run(model, Budget(max_cost=1, prices={"small": (1, 1)}))
    assert model.calls == ()


async def test_the_cost_is_that_of_the_model_that_answered() -> None:
    budget = Budget(max_model_calls=9, prices={"small": (1_000_000, 0), "large": (2_000_000, 0)})
    small = Priced([RuntimeError("down")])
    large = Priced([spending([assistant_message("Done.")])], name="large")
    agent = Agent("a", "x", model=small, middleware=[budget, Fallback(large)])
    await agent.run_async("Go")
    assert budget.used().cost == 20.0


async def test_an_answer_of_a_model_without_a_price_costs_the_highest_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    budget = Budget(max_cost=15, prices={"small": (1_000_000, 0), "other": (0, 1_000_000)})
    for _ in range(2):
        small = Priced([RuntimeError("down")])
        large = Priced([spending([assistant_message("Done.")])], name="large")
        agent = Agent("a", "x", model=small, middleware=[budget, Fallback(large)])
        with nullcontext() if not budget.used().cost else pytest.raises(BudgetExceededError, match="cost"):
            await agent.run_async("Go")
    assert budget.used().cost == 15.0
    (warned,) = [record for record in caplog.records if "without a price" in record.getMessage()]
    assert vars(warned)["model"] == "large"


async def test_inside_a_fallback_each_attempt_needs_a_price_of_its_own() -> None:
    budget = Budget(max_cost=100, prices={"small": (1_000_000, 0)})
    small, large = Priced([RuntimeError("down")]), Priced([], name="large")
    inside = Agent("a", "x", model=small, middleware=[Fallback(large), budget])
    with pytest.raises(InvalidOptionError, match="price"):
        await inside.run_async("Go")


async def test_a_call_beyond_the_limit_of_a_tool_is_refused_and_the_run_goes_on() -> None:
    budget = Budget(per_tool={"look": 1})
    model = looking(3)
    context = await run(model, budget)
    outputs = [item["output"] for item in model.calls[-1].input if item.get("output")]
    assert (
        outputs
        == ["seen"] + ["The tool look may be called 1 times, and that is used up. Go on without it."] * 2
    )
    assert context["result"].final_output == "Done."
    assert budget.used().per_tool == {"look": 1}
    await run(looking(1, "glance"), budget)
    assert budget.used().per_tool == {"look": 1, "glance": 1}


async def test_parallel_calls_of_one_turn_count_together() -> None:
    calls = [function_call("look", {}, call_id=f"c{number}") for number in range(5)]
    budget = Budget(per_tool={"look": 2})
    await run(ScriptedModel([calls, [assistant_message("Done.")]]), budget)
    assert budget.used().per_tool == {"look": 2}
    with pytest.raises(BudgetExceededError):
        await run(ScriptedModel([calls, [assistant_message("Done.")]]), Budget(max_tool_calls=4))


async def test_concurrent_runs_do_not_exceed_the_limit_together() -> None:
    def answer(_request: Any) -> Any:
        return Reply("Done.", delay=0.05)

    budget = Budget(max_model_calls=7)
    with OfflineServer(answer) as server:
        agent = Agent("a", "x", model=server.bundle(), middleware=[budget])
        runs = [agent.run_async("Go") for _ in range(20)]
        results = await asyncio.gather(*runs, return_exceptions=True)
        assert len(server.requests) == 7
    assert sum(isinstance(result, BudgetExceededError) for result in results) == 13
    assert budget.used().model_calls == 7
    assert budget.used().tokens == 7 * 15


@pytest.mark.parametrize(("most", "earlier", "admitted"), [(20, 0, 2), (None, 1, 3), (None, 0, 10)])
async def test_budget_is_reserved_for_calls_in_progress(
    most: int | None, earlier: int, admitted: int
) -> None:
    released = asyncio.Event()

    async def stay(_call: Any) -> Any:
        await released.wait()
        return spending([assistant_message("Done.")])

    model = Priced([*[spending([assistant_message("Done.")])] * earlier, *[ModelStep.respond(stay)] * 10])
    settings, budget = ModelSettings(max_tokens=most), Budget(max_tokens=50)
    agent = Agent("a", "x", model=model, model_settings=settings, middleware=[budget])
    for _ in range(earlier):
        await agent.run_async("Go")
    runs = [asyncio.create_task(agent.run_async("Go")) for _ in range(10)]
    while len(model.calls) + sum(run.done() for run in runs) < earlier + 10:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0)
    released.set()
    results = await asyncio.gather(*runs, return_exceptions=True)
    assert sum(isinstance(result, dict) for result in results) == admitted
    assert budget.used().tokens == (earlier + admitted) * 15


async def test_calls_that_fail_or_are_cancelled_release_their_reservation() -> None:
    entered = asyncio.Event()

    async def stay(_call: Any) -> Any:
        entered.set()
        await asyncio.Event().wait()

    model = ScriptedModel([LookupError("gone"), ModelStep.respond(stay), [assistant_message("Done.")]])
    budget = Budget(max_model_calls=1, max_tokens=100)
    agent = Agent("a", "x", model=model, middleware=[budget])
    with pytest.raises(LookupError):
        await agent.run_async("Go")
    task = asyncio.create_task(agent.run_async("Go"))
    await entered.wait()
    with pytest.raises(BudgetExceededError):
        await agent.run_async("Go")
    task.cancel()
    await asyncio.wait([task])
    await agent.run_async("Go")
    assert budget.used().model_calls == 1


async def test_a_failed_tool_call_counts_and_a_refused_one_does_not() -> None:
    def fail() -> str:
        raise LookupError

    budget = Budget(max_model_calls=9)
    agent = Agent("a", "x", model=looking(1, "fail"), tools=[fail], middleware=[budget])
    await agent.run_async("Go")
    assert budget.used().per_tool == {"fail": 1}
    budget.reset()

    def find(city: str) -> str:
        return city

    call = function_call("find", {"city": "Oslo"}, call_id="1")
    model = Priced([[call], [assistant_message("Done.")]])
    agent = Agent("a", "x", model=model, tools=[find], middleware=[budget])
    rules = {"params": {"find": {"city": {"enum": ["Rome"]}}}}
    await agent.run_async("Go", {"tool_rules": rules})
    assert "[E12]" in str(model.calls[-1].input)
    assert budget.used().tool_calls == 0


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_agent_used_as_a_tool_that_exceeds_the_budget_ends_the_run(streamed: bool) -> None:
    inner = SDKAgent(name="inner", model=ScriptedModel([[assistant_message("Inner.")]]))
    model = Priced([[function_call("ask", {"input": "Go"}, call_id="1")], [assistant_message("Done.")]])
    tools = [inner.as_tool("ask", "Ask.")]
    agent = Agent("a", "x", model=model, tools=tools, middleware=[Budget(max_model_calls=1)])
    with pytest.raises(BudgetExceededError):
        if streamed:
            async with agent.stream("Go") as stream:
                _ = [event async for event in stream]
        else:
            await agent.run_async("Go")
    assert len(model.calls) == 1


async def test_a_missing_price_in_an_agent_used_as_a_tool_ends_the_run() -> None:
    inner = SDKAgent(name="inner", model=Priced([[assistant_message("Inner.")]], name="unheard-of"))
    model = Priced([[function_call("ask", {"input": "Go"}, call_id="1")], [assistant_message("Done.")]])
    budget = Budget(max_cost=1, prices={"small": (1, 1)})
    agent = Agent("a", "x", model=model, tools=[inner.as_tool("ask", "Ask.")], middleware=[budget])
    with pytest.raises(InvalidOptionError, match="unheard-of"):
        await agent.run_async("Go")


async def test_a_run_started_by_a_tool_can_share_the_budget() -> None:
    budget = Budget(max_model_calls=2)
    inner = Agent("inner", "x", model=looking(3), tools=[look], middleware=[budget])

    async def ask() -> str:
        return str((await inner.run_async("Go"))["result"].final_output)

    outer = ScriptedModel([[function_call("ask", {}, call_id="1")], [assistant_message("Done.")]])
    agent = Agent("outer", "x", model=outer, tools=[ask], middleware=[budget])
    with pytest.raises(BudgetExceededError) as caught:
        await agent.run_async("Go")
    assert caught.value.kantan_run.agent is agent  # type: ignore[attr-defined]
    assert len(outer.calls) == 1


async def test_it_applies_to_handoff_targets_and_streamed_runs() -> None:
    with OfflineServer([ScriptedToolCall("transfer_to_b"), ScriptedToolCall("look"), "Done."]) as server:
        target = Agent("b", "x", model=server.bundle(), tools=[look])
        budget = Budget(max_model_calls=3, max_tokens=45)
        agent = Agent("a", "x", model=server.bundle(), handoffs=[target], middleware=[budget])
        async with agent.stream("Go") as stream:
            _ = [event async for event in stream]
    assert budget.used() == BudgetUse(
        model_calls=3,
        tool_calls=1,
        input_tokens=30,
        output_tokens=15,
        tokens=45,
        per_tool={"look": 1},
    )


@attrs.frozen
class Step:
    """One call of a run: its tool, if any, its usage, how it ends, and how often it yields to other runs."""

    tool: str | None
    read: int
    written: int
    ending: str
    turns: int


steps = st.builds(
    Step,
    tool=st.sampled_from([None, None, "look", "glance"]),
    read=st.integers(0, 20),
    written=st.integers(0, 10),
    ending=st.sampled_from(["well", "well", "failed", "cancelled"]),
    turns=st.integers(0, 3),
)


@given(
    runs=st.lists(st.lists(steps, max_size=6), min_size=1, max_size=6),
    limits=st.tuples(*[st.none() | st.integers(0, 6)] * 3),
    tokens=st.none() | st.integers(0, 100),
    most=st.none() | st.integers(10, 20),
)
def test_no_interleaving_exceeds_a_limit_and_all_sums_are_right(
    runs: list[list[Step]], limits: tuple[int | None, ...], tokens: int | None, most: int | None
) -> None:
    models, tools, looks = limits
    per_tool = {"unused": 1} if looks is None else {"look": looks}
    budget = Budget(models, tools, tokens, per_tool=per_tool, prices={"*": (1_000_000, 2_000_000)})
    in_progress = {"model": 0, "tool": 0, "look": 0}
    actual = {"model": 0, "tool": 0, "look": 0, "read": 0, "written": 0}
    uncovered = 0

    def check() -> None:
        for kind, limit in (("model", models), ("tool", tools), ("look", looks)):
            assert limit is None or actual[kind] + in_progress[kind] <= limit

    async def make(kinds: list[str], step: Step) -> ModelResponse:
        nonlocal uncovered
        for kind in kinds:
            in_progress[kind] += 1
        try:
            check()
            for _ in range(step.turns):
                await asyncio.sleep(0)
            if step.ending == "failed":
                raise LookupError
            if step.ending == "cancelled":
                raise asyncio.CancelledError
        finally:
            for kind in kinds:
                in_progress[kind] -= 1
                actual[kind] += step.ending == "well" or kind != "model"
        if kinds == ["model"]:
            actual["read"] += step.read
            actual["written"] += step.written
            uncovered = max(uncovered, step.read + step.written - (most or 0))
        usage = Usage(
            input_tokens=step.read, output_tokens=step.written, total_tokens=step.read + step.written
        )
        return ModelResponse(output=[], usage=usage, response_id=None)

    async def play(script: list[Step]) -> None:
        run = Run(None, "Go", {}, "1")
        for step in script:
            kinds = ["model"] if step.tool is None else ["tool", "look"] if step.tool == "look" else ["tool"]

            async def proceed(_call: Any, kinds: list[str] = kinds, step: Step = step) -> ModelResponse:
                return await make(kinds, step)

            if step.tool is None:
                settings = ModelSettings(max_tokens=most)
                made = budget.model_call(ModelCall(run, "a", "small", None, [], settings, []), proceed)
            else:
                made = budget.tool_call(ToolCall(run, "a", None, step.tool, "{}", "1", None), proceed)
            try:
                await made
            except (LookupError, BudgetExceededError, asyncio.CancelledError):
                continue

    async def play_all() -> None:
        async with anyio.create_task_group() as group:
            for script in runs:
                group.start_soon(play, script)

    asyncio.run(play_all())
    used = budget.used()
    assert (used.model_calls, used.tool_calls) == (actual["model"], actual["tool"])
    assert used.per_tool.get("look", 0) == actual["look"]
    assert (used.input_tokens, used.output_tokens) == (actual["read"], actual["written"])
    assert used.tokens == actual["read"] + actual["written"]
    assert used.cost == pytest.approx(actual["read"] + 2 * actual["written"])
    # Each run has at most one call in progress, which may use more than was reserved for it.
    assert tokens is None or used.tokens <= tokens + len(runs) * max(uncovered, 0)


counts = st.one_of(
    st.none(),
    st.integers(-(10**400), 10**400),
    st.integers(0, 50),
    st.floats(),
    st.booleans(),
    st.text(max_size=3),
    st.sampled_from([10**400, -(10**400), float("nan"), float("inf"), "12", [1], {}]),
)


class Values:
    """Any values as attributes: a usage report with some of the counts, or an answer with a report."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)


reports = st.one_of(
    st.none(),
    st.just("usage"),
    st.builds(
        Values,
        st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), counts)
        ),
    ),
)


@given(
    script=st.lists(
        st.tuples(reports, st.sampled_from(["well", "well", "failed", "cancelled"]), counts), max_size=12
    ),
    limit=st.integers(0, 100),
)
def test_no_usage_report_refills_a_budget_lifts_a_limit_or_keeps_a_reservation(
    script: list[tuple[Any, str, Any]], limit: int
) -> None:
    prices = {"*": (sys.float_info.max, 2.0)}
    budget = Budget(max_tokens=limit, max_cost=sys.float_info.max, prices=prices)
    run = Run(None, "Go", {}, "1")

    async def play() -> None:
        for report, ending, most in script:

            async def proceed(_call: Any, report: Any = report, ending: str = ending) -> Any:
                if ending == "failed":
                    raise LookupError
                if ending == "cancelled":
                    raise asyncio.CancelledError
                return Values({"usage": report})

            before = budget.used()
            settings = ModelSettings()
            settings.max_tokens = most
            made = budget.model_call(ModelCall(run, "a", "small", None, [], settings, []), proceed)
            is_made = True
            try:
                await made
            except BudgetExceededError:
                is_made = False
            except (LookupError, asyncio.CancelledError):
                assert budget.used() == before
            after = budget.used()
            assert not (is_made and before.tokens >= limit), "a call was made with nothing left"
            for name in ("model_calls", "input_tokens", "output_tokens", "tokens", "cost"):
                assert getattr(after, name) >= getattr(before, name)
                assert math.isfinite(getattr(after, name))
            assert not budget._ledger.in_progress

    asyncio.run(play())


async def test_a_negative_count_refills_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    budget = Budget(max_tokens=30)
    await run(Priced([spending([assistant_message("Done.")])]), budget)
    with caplog.at_level("WARNING", "kantan_agents"):
        await run(Priced([spending([assistant_message("Done.")], read=-1000)]), budget)
    assert budget.used().tokens >= 15 + 5
    assert "usage is not a number of tokens" in caplog.text


async def test_a_count_of_400_digits_uses_the_budget_up_and_leaves_no_reservation() -> None:
    budget = Budget(max_tokens=30, max_cost=1, prices={"*": (1.0, 1.0)})
    await run(Priced([spending([assistant_message("Done.")], read=10**400)]), budget)
    with pytest.raises(BudgetExceededError):
        await run(Priced([spending([assistant_message("Done.")])]), budget)
    budget.reset()
    await run(Priced([spending([assistant_message("Done.")])]), budget)
    assert budget.used().tokens == 15


@pytest.mark.parametrize("most", [float("nan"), -1000, "many"])
async def test_a_max_tokens_that_is_not_a_number_of_tokens_lifts_no_limit(most: Any) -> None:
    async def answer(_call: Any) -> Any:
        raise AssertionError("no budget is left")

    budget, run_ = Budget(max_tokens=0), Run(None, "Go", {}, "1")
    settings = ModelSettings()
    settings.max_tokens = most
    with pytest.raises(BudgetExceededError):
        await budget.model_call(ModelCall(run_, "a", "small", None, [], settings, []), answer)


def test_a_budget_without_a_limit_is_an_error() -> None:
    with pytest.raises(InvalidOptionError, match="at least one limit"):
        Budget()
    with pytest.raises(InvalidOptionError, match="at least one limit"):
        Budget(per_tool={}, prices={"*": (1, 1)})


def test_it_counts_correctly_in_several_threads() -> None:
    budget = Budget(max_model_calls=50)
    refused = threading.Semaphore(0)

    def work() -> None:
        for _ in range(20):
            try:
                Agent(
                    "a", "x", model=Priced([spending([assistant_message("Hi.")])]), middleware=[budget]
                ).run("Go")
            except BudgetExceededError:
                refused.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.used().model_calls == 50
    assert budget.used().tokens == 50 * 15
    assert all(refused.acquire(blocking=False) for _ in range(30))
    assert not refused.acquire(blocking=False)


@pytest.mark.parametrize(
    "options",
    [
        {"max_model_calls": -1},
        {"max_tool_calls": True},
        {"max_tokens": 1.5},
        {"max_tokens": float("nan")},
        {"max_tokens": int("-" + "9" * 4000) * 10**1000},
        {"max_cost": float("nan"), "prices": {"*": (1, 1)}},
        {"max_cost": float("inf"), "prices": {"*": (1, 1)}},
        {"max_cost": True, "prices": {"*": (1, 1)}},
        {"per_tool": {"look": True}},
        {"prices": {"small": (1, float("nan"))}},
        {"max_cost": 1},
        {"max_cost": -1, "prices": {"*": (1, 1)}},
        {"per_tool": ["look"]},
        {"per_tool": {"look": None}},
        {"per_tool": {1: 1}},
        {"prices": {"small": 3}},
        {"prices": {"small": (1, -1)}},
        {"prices": 5},
    ],
)
def test_an_invalid_option_is_an_error(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError):
        Budget(**options)
