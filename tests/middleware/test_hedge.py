from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from agents import ModelResponse, Usage
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.hedging import SITUATIONS, run_in_virtual_time, simulate, with_stragglers
from kantan_agents import Agent, Middleware, Recording, TraceStore, record_traces, replay_async
from kantan_agents.core.events import ModelCallFinished, ModelCallStarted, TextDelta
from kantan_agents.errors import InvalidOptionError
from kantan_agents.middleware import Budget, Cache, Fallback, Hedge, LimitConcurrency, Redact
from kantan_agents.middleware.hedge.hedge import Allowance, Latencies
from kantan_agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from tests.sizes import size

NEVER = 1_000_000.0


class Timed(ScriptedModel):
    """A model whose requests take the given seconds, in order; an error is raised after one second.

    Attributes:
        begun: How many requests it got.
        cancelled: How many of them were cancelled.
    """

    def __init__(self, *latencies: Any, answers: Any = None) -> None:
        self.latencies = list(latencies)
        self.answers = answers
        self.begun = self.cancelled = 0
        super().__init__(self._answer)

    async def _answer(self, call: Any) -> Any:
        number = self.begun
        self.begun += 1
        latency = self.latencies[number] if number < len(self.latencies) else 1.0
        try:
            await anyio.sleep(1.0 if isinstance(latency, Exception) else latency)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(latency, Exception):
            raise latency
        if self.answers is not None:
            return self.answers(call)
        usage = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
        return ModelStep(output=[assistant_message(f"Answer {number}.")], usage=usage)


def hedging(model: Any, *middleware: Any, after: Any = 2.0, **options: Any) -> Agent[Any]:
    hedge = Hedge(after, share=1)
    return Agent("service", "x", model=model, middleware=[*middleware, hedge], **options)


async def output(agent: Agent[Any], **options: Any) -> str:
    return str((await agent.run_async("Hi", **options))["result"].final_output)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    async def measured() -> tuple[Any, float]:
        begun = anyio.current_time()
        found = await work()
        return found, anyio.current_time() - begun

    return run_in_virtual_time(measured)


def hedge_of(agent: Agent[Any]) -> Hedge:
    return next(m.__self__ for m in agent.layers.model_calls if isinstance(m.__self__, Hedge))


def test_a_fast_answer_needs_no_second_request() -> None:
    model = Timed(1.0)
    assert timed(lambda: output(hedging(model))) == ("Answer 0.", 1.0)
    assert model.begun == 1


def test_the_first_answer_counts_and_the_other_request_is_cancelled() -> None:
    model = Timed(NEVER, 1.0)
    agent = hedging(model)
    assert timed(lambda: output(agent)) == ("Answer 1.", 3.0)
    assert (model.begun, model.cancelled) == (2, 1)
    stats = hedge_of(agent).stats()
    assert (stats.calls, stats.hedged, stats.won, stats.denied) == (1, 1, 1, 0)
    assert repr(hedge_of(agent)) == "Hedge(2.0, share=1, calls=1, hedged=1)"


def test_the_first_request_may_win_after_all() -> None:
    model = Timed(3.0, NEVER)
    agent = hedging(model)
    assert timed(lambda: output(agent)) == ("Answer 0.", 3.0)
    assert model.cancelled == 1
    assert hedge_of(agent).stats().won == 0


def test_if_one_request_fails_the_other_one_is_waited_for() -> None:
    lost = ConnectionError("lost")
    assert timed(lambda: output(hedging(Timed(5.0, lost)))) == ("Answer 0.", 5.0)
    model = Timed(NEVER, lost)
    model.latencies[0] = 10.0
    assert timed(lambda: output(hedging(model)))[0] == "Answer 0."

    class FailsLate(Timed):
        async def _answer(self, call: Any) -> Any:
            if self.begun == 0:
                self.begun += 1
                await anyio.sleep(4)
                raise lost
            return await super()._answer(call)

    assert timed(lambda: output(hedging(FailsLate(0, 9.0)))) == ("Answer 1.", 11.0)


def test_if_both_fail_the_error_of_the_first_is_raised() -> None:
    model = Timed(ConnectionError("first"), answers=None)

    class Both(Timed):
        async def _answer(self, call: Any) -> Any:
            number = self.begun
            self.begun += 1
            await anyio.sleep((3, 4)[number])
            raise ConnectionError(("first", "second")[number])

    model = Both()
    with pytest.raises(ConnectionError, match="first"):
        timed(lambda: output(hedging(model)))
    assert model.begun == 2


def test_an_error_before_the_time_is_raised_at_once() -> None:
    model = Timed(ConnectionError("lost"))
    with pytest.raises(ConnectionError):
        timed(lambda: output(hedging(model)))
    assert model.begun == 1


def test_a_model_that_raises_a_cancellation_does_not_hang() -> None:
    class Odd(ScriptedModel):
        async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        timed(lambda: output(hedging(Odd())))


def test_an_exit_of_the_process_is_not_kept_from_it_by_the_other_request() -> None:
    class Exits(Middleware):
        def __init__(self) -> None:
            self.calls = 0

        async def model_call(self, call: Any, call_next: Any) -> Any:
            self.calls += 1
            if self.calls == 2:
                raise SystemExit(3)
            return await call_next(call)

    model = Timed(NEVER)
    agent = Agent("service", "x", model=model, middleware=[Hedge(0.0, share=1), Exits()])
    with pytest.raises(SystemExit, match="3"):
        agent.run("Hi")


def test_cancelling_the_run_cancels_both_requests() -> None:
    model = Timed(NEVER, NEVER)

    async def cancelled() -> None:
        with anyio.move_on_after(10) as scope:
            await output(hedging(model))
        assert scope.cancelled_caught

    assert timed(cancelled)[1] == 10
    assert (model.begun, model.cancelled) == (2, 2)


def test_both_requests_have_events_and_the_slower_one_is_marked() -> None:
    agent = hedging(Timed(NEVER, 1.0))
    seen: list[Any] = []
    with agent.subscribe(seen.append):
        timed(lambda: output(agent))
    assert [event.call_id for event in seen if isinstance(event, ModelCallStarted)] == ["model_1", "model_2"]
    ends = {event.call_id: event for event in seen if isinstance(event, ModelCallFinished)}
    assert (ends["model_1"].outcome, ends["model_1"].superseded) == ("cancelled", True)
    assert (ends["model_2"].outcome, ends["model_2"].superseded) == ("finished", False)


# Streams.


async def streamed(agent: Agent[Any], **context: Any) -> tuple[str, str]:
    texts: list[str] = []
    async with agent.stream("Hi", context) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                texts.append(event.text)
    return "".join(texts), str(stream.context["result"].final_output)


def test_of_two_streams_only_one_is_passed_on() -> None:
    model = Timed(NEVER, 1.0, answers=lambda _: "Some words to stream.")
    found, seconds = timed(lambda: streamed(hedging(model)))
    assert found == ("Some words to stream.",) * 2
    assert seconds == 3.0
    assert model.cancelled == 1


class Slowly(ScriptedModel):
    """Streams its first events at once, and each further one after some seconds."""

    def __init__(self, *pauses: dict[str, float]) -> None:
        self.pauses = list(pauses)
        self.begun = 0
        super().__init__(lambda _: "Some words to stream.")

    async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        pauses = self.pauses[self.begun]
        self.begun += 1
        async for event in super().stream_response(*args, **kwargs):
            await anyio.sleep(pauses.pop(event.type, 0.0))
            yield event


def test_a_stream_that_has_begun_is_not_asked_for_again() -> None:
    model = Slowly({"response.output_text.done": 50.0})
    found, seconds = timed(lambda: streamed(hedging(model)))
    assert found == ("Some words to stream.",) * 2
    assert (model.begun, seconds) == (1, 50.0)


def test_a_stream_that_was_only_announced_has_not_begun() -> None:
    model = Slowly({"response.output_item.added": NEVER}, {})
    found, seconds = timed(lambda: streamed(hedging(model)))
    assert found == ("Some words to stream.",) * 2
    assert (model.begun, seconds) == (2, 2.0)


def test_redacted_streams_stay_redacted() -> None:
    model = Timed(NEVER, 1.0, answers=lambda _: "Write to aiko@example.com now.")
    assert timed(lambda: streamed(hedging(model, Redact())))[0] == ("Write to [email] now.",) * 2


# Together with other middleware.


@pytest.mark.parametrize("price", [None, {"*": (1.0, 1.0)}])
def test_a_budget_counts_what_is_known_of_the_slower_request(price: Any) -> None:
    budget = Budget(max_tokens=1000, max_model_calls=1, prices=price)
    timed(lambda: output(hedging(Timed(NEVER, 1.0), budget)))
    used = budget.used()
    # One call; its input was read twice, and how much the slower one has written is not known.
    assert (used.model_calls, used.input_tokens, used.output_tokens) == (1, 20, 5)
    assert (used.tokens, used.calls_without_usage) == (25, 1)
    assert used.cost == pytest.approx(25e-6 if price else 0)


async def usage_of(agent: Agent[Any], *, is_streamed: bool, **options: Any) -> tuple[int, int, int]:
    if is_streamed:
        async with agent.stream("Hi", **options) as stream:
            async for _ in stream:
                pass
        context = stream.context
    else:
        context = await agent.run_async("Hi", **options)
    usage = context["result"].context_wrapper.usage
    return usage.requests, usage.input_tokens, usage.output_tokens


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    ("latencies", "expected"),
    [((NEVER, 1.0), (2, 20, 5)), ((3.0, 2.0), (2, 20, 5)), ((1.0,), (1, 10, 5))],
    ids=["the second wins", "the first wins", "no second"],
)
def test_the_usage_of_a_run_has_the_slower_request(
    latencies: Any, expected: tuple[int, int, int], is_streamed: bool
) -> None:
    budget = Budget(max_tokens=1000)
    agent = hedging(Timed(*latencies), budget)
    assert timed(lambda: usage_of(agent, is_streamed=is_streamed))[0] == expected
    assert (budget.used().input_tokens, budget.used().output_tokens) == expected[1:]  # once, not twice


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_usage_of_a_structured_run_has_the_slower_request(is_streamed: bool) -> None:
    def answer(_: int) -> ModelStep:
        usage = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
        return ModelStep(output=[assistant_message('{"answer": 1}')], usage=usage)

    agent = hedging(Timed(NEVER, 1.0, answers=answer), output_type=dict[str, int])
    assert timed(lambda: usage_of(agent, is_streamed=is_streamed))[0] == (2, 20, 5)


def test_both_requests_of_a_fallback_and_the_cache_before_count_once() -> None:
    fallback = Fallback(Timed(NEVER, 1.0))
    agent = hedging(Timed(ConnectionError("down")), Cache(per=None), fallback)
    assert timed(lambda: usage_of(agent, is_streamed=False))[0] == (2, 20, 5)
    assert timed(lambda: usage_of(agent, is_streamed=False))[0] == (0, 0, 0)  # from the cache


def test_answers_that_arrive_together_are_both_counted() -> None:
    budget = Budget(max_tokens=1000)
    agent = hedging(Timed(3.0, 1.0), budget)
    seen: list[Any] = []
    with agent.subscribe(seen.append):
        timed(lambda: output(agent))
    used = budget.used()
    assert used.model_calls == 1
    assert used.input_tokens == 20
    ends = [event for event in seen if isinstance(event, ModelCallFinished)]
    assert sorted(event.superseded for event in ends) == [False, True]


def test_a_budget_without_a_second_request_counts_one() -> None:
    budget = Budget(max_tokens=1000)
    timed(lambda: output(hedging(Timed(1.0), budget)))
    assert (budget.used().tokens, budget.used().calls_without_usage) == (15, 0)


def test_a_budget_inside_may_refuse_the_second_request() -> None:
    agent = Agent(
        "service",
        "x",
        model=Timed(3.0),
        middleware=[Hedge(2.0, share=1), Budget(max_model_calls=1)],
    )
    assert timed(lambda: output(agent)) == ("Answer 0.", 3.0)


def test_a_fallback_around_hedges_each_model() -> None:
    down, up = Timed(ConnectionError("down")), Timed(NEVER, 1.0)
    found, seconds = timed(lambda: output(hedging(down, Fallback(up))))
    assert (found, seconds) == ("Answer 1.", 4.0)
    assert (down.begun, up.begun) == (1, 2)


def test_both_requests_share_a_place() -> None:
    limit = LimitConcurrency(1)
    model = Timed(NEVER, 1.0)
    assert timed(lambda: output(hedging(model, limit)))[0] == "Answer 1."
    assert limit.stats().running == 0


def test_tools_run_once() -> None:
    ran: list[int] = []

    def look() -> str:
        ran.append(1)
        return "seen"

    def answer(call: Any) -> Any:
        has_result = any(item.get("type") == "function_call_output" for item in call.input)
        return "Done." if has_result else [function_call("look", {}, call_id="c1")]

    async def look_async() -> str:
        return look()

    look_async.__name__ = "look"
    model = Timed(NEVER, 1.0, NEVER, 1.0, answers=answer)
    assert timed(lambda: output(hedging(model, tools=[look_async])))[0] == "Done."
    assert (len(ran), model.begun) == (1, 4)


class Answering(Middleware):
    async def model_call(self, call: Any, call_next: Any) -> Any:
        usage = Usage()
        return ModelResponse([assistant_message("Made up.")], usage, None)


def test_what_another_middleware_answers_is_the_answer() -> None:
    agent = Agent("service", "x", model=Timed(), middleware=[Hedge(0.0, share=1), Answering()])
    assert timed(lambda: output(agent))[0] == "Made up."


def test_internal_calls_do_not_decide_a_race() -> None:
    class Summarize(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            await call_next(call.internally(instructions="Summarize."))
            return await call_next(call)

    model = Timed(1.0, 5.0, 1.0, 1.0)
    agent = Agent("service", "x", model=model, middleware=[Hedge(2.0, share=1), Summarize()])
    # The first request summarizes until 1 and would be done at 6; the second one takes from 2 to 4.
    assert timed(lambda: output(agent)) == ("Answer 3.", 4.0)


# The trace, and replays.


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_run_with_a_second_request_is_recorded_and_replayed(tmp_path: Path, is_streamed: bool) -> None:
    recorder = record_traces(tmp_path / "traces.sqlite3")
    agent = hedging(Timed(NEVER, 1.0))
    timed(lambda: streamed(agent) if is_streamed else output(agent))
    recorder.force_flush()
    store = TraceStore(tmp_path / "traces.sqlite3")
    trace = store.traces(limit=1)[0].trace_id
    recording = Recording.from_trace(store, trace)
    assert [call.is_superseded for call in recording.root.model_calls] == [True, False]
    data: Any = next(span for span in store.trace(trace).spans if span.name == "hedge").raw
    assert data["span_data"]["data"] == {"model": None, "after": 2.0, "agent": "service", "won": True}
    recording.save(tmp_path / "run.json")
    model = Timed(ConnectionError("a replay asks no model"))
    replayed = asyncio.run(replay_async(Recording.load(tmp_path / "run.json"), hedging(model)))
    assert replayed.output == "Answer 1."
    assert model.begun == 0
    recorder.shutdown()


# Which calls get a second request.


def test_a_percentile_is_learned_for_each_model() -> None:
    hedge = Hedge("p95", share=1)
    usual, rare = 25, 5
    fast = Timed(*[2.0] * rare, *[1.0] * usual, NEVER, 1.0)
    slow = Timed(*[20.0] * rare, *[10.0] * usual, 15.0)
    agents = [Agent("service", "x", model=model, middleware=[hedge]) for model in (fast, slow)]

    async def serve() -> list[float]:
        seconds = []
        for agent in agents:
            for _ in range(31):
                begun = anyio.current_time()
                await output(agent)
                seconds.append(anyio.current_time() - begun)
        return seconds

    found = run_in_virtual_time(serve)
    assert found[30] == 2.0 + 1.0
    assert found[61] == 15.0
    assert (fast.begun, slow.begun) == (32, 31)


def test_before_a_percentile_is_known_no_second_request_is_made() -> None:
    model = Timed(*[1.0] * 18, 500.0)
    agent = Agent("service", "x", model=model, middleware=[Hedge(share=1)])

    async def serve() -> None:
        for _ in range(19):
            await output(agent)

    run_in_virtual_time(serve)
    assert model.begun == 19


def test_streams_and_whole_answers_have_percentiles_of_their_own() -> None:
    hedge = Hedge(share=1)
    model = Timed(*[1.0] * 20, 50.0)
    agent = Agent("service", "x", model=model, middleware=[hedge])

    async def serve() -> None:
        for _ in range(20):
            await output(agent)
        await streamed(agent)

    run_in_virtual_time(serve)
    assert model.begun == 21


def test_only_a_share_of_the_calls_gets_a_second_request() -> None:
    hedge = Hedge(0.5, share=0.1)
    model = Timed()
    agent = Agent("service", "x", model=model, middleware=[hedge])

    async def serve() -> None:
        for _ in range(100):
            await output(agent)

    run_in_virtual_time(serve)
    stats = hedge.stats()
    assert model.begun - 100 == stats.hedged <= 10
    assert stats.hedged + stats.denied == 100


@given(st.lists(st.booleans(), max_size=300), st.floats(0.001, 1))
def test_an_allowance_is_never_exceeded(spends: list[bool], share: float) -> None:
    allowance, spent = Allowance(share, 10.0), 0
    for number, spend in enumerate(spends, 1):
        allowance.earn()
        spent += spend and allowance.spend()
        assert spent <= share * number + 1e-6


@given(st.lists(st.floats(0, 1e6), min_size=20, max_size=120), st.floats(0.5, 0.94))
def test_a_percentile_is_that_of_the_latest_latencies(values: list[float], quantile: float) -> None:
    latencies = Latencies(quantile, window=50)
    for value in values:
        latencies.add("m", value)
    found, latest = latencies.of("m"), values[-50:]
    assert found in latest
    assert found is not None
    assert sum(value <= found for value in latest) >= quantile * len(latest)
    assert sum(value < found for value in latest) < quantile * len(latest) + 1e-9


# The promise.


@pytest.mark.parametrize("seed", [1, 2])
def test_the_longest_waits_are_halved_for_less_than_6_percent_more_requests(seed: int) -> None:
    calls = size(1_000, 400)
    plain = simulate(with_stragglers, calls, seed, None)
    hedged = simulate(with_stragglers, calls, seed, Hedge())
    assert hedged.percentile(99) <= plain.percentile(99) / 2
    assert hedged.percentile(50) == pytest.approx(plain.percentile(50), rel=0.1)
    assert 0 < hedged.more_requests < 0.06


@pytest.mark.parametrize(("name", "draw"), SITUATIONS, ids=[name for name, _ in SITUATIONS])
def test_no_situation_gets_more_requests_than_its_share(name: str, draw: Any) -> None:
    del name
    assert simulate(draw, size(400, 200), 3, Hedge(share=0.03)).more_requests < 0.03 + 1e-9


def test_equal_seeds_give_equal_simulations() -> None:
    once, again = (simulate(lambda draw: draw.expovariate(1), 50, 7, Hedge()) for _ in range(2))
    assert once == again
    assert once.seconds[0] > 0
    assert random.Random(7).expovariate(1) in once.seconds


@pytest.mark.parametrize(
    ("make", "option"),
    [
        (lambda: Hedge("95"), "after"),
        (lambda: Hedge("p100"), "after"),
        (lambda: Hedge("p49"), "after"),
        (lambda: Hedge(-1), "after"),
        (lambda: Hedge(True), "after"),
        (lambda: Hedge(share=0), "share"),
        (lambda: Hedge(share=1.5), "share"),
        (lambda: Hedge(window=19), "window"),
    ],
)
def test_invalid_options(make: Callable[[], Any], option: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"E75\] Invalid option {option}:"):
        make()
