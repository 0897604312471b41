from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import anyio
import httpx
import openai
import pytest
from agents import Agent as SDKAgent
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, AnthropicProvider, Event, run_of
from kantan_agents.errors import (
    DeadlineExceededError,
    InvalidOptionError,
    ProviderRequestError,
    QueueFullError,
    QueueTimeoutError,
    RunKeyError,
)
from kantan_agents.middleware import Deadline, LimitConcurrency, Retry
from kantan_agents.middleware.limit_concurrency import places as places_module
from kantan_agents.middleware.limit_concurrency.places import HeldPlace, Places, Waiter, Window
from kantan_agents.middleware.limit_concurrency.rate_limits import pause_after, pause_of_answer
from kantan_agents.testing import OfflineServer, Reply, ScriptedModel, assistant_message, function_call
from tests.clocks import let_pass
from tests.models.protocol.wire_server import Body, WireServer, recorded

DONE = [assistant_message("Done.")]


class Gate:
    """A model whose answers wait until the test lets them out, one by one or all."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.begun: list[str] = []
        self.waiting: list[anyio.Event] = []
        self.is_open = False

    async def __call__(self, call: Any) -> Any:
        self.running += 1
        self.most = max(self.most, self.running)
        self.begun.append(call.input if isinstance(call.input, str) else call.input[-1]["content"])
        try:
            if not self.is_open:
                event = anyio.Event()
                self.waiting.append(event)
                await event.wait()
        finally:
            self.running -= 1
        return DONE

    def open(self) -> None:
        self.is_open = True
        for event in self.waiting:
            event.set()


async def settled(times: int = 50) -> None:
    """Let all tasks go on until each of them waits."""
    for _ in range(times):
        await anyio.lowlevel.checkpoint()


def service(gate: Any, *middleware: Any, **options: Any) -> Agent:
    return Agent("service", "x", model=ScriptedModel(gate), middleware=[*middleware], **options)


async def test_only_n_calls_are_made_at_the_same_time() -> None:
    gate, limit = Gate(), LimitConcurrency(2)
    agent = service(gate, limit)
    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(agent.run_async, str(number))
        await settled()
        assert gate.running == 2
        assert repr(limit) == "LimitConcurrency(2, per='tenant', running=2, waiting=3)"
        gate.open()
    assert gate.most == 2
    assert gate.begun == ["0", "1", "2", "3", "4"]
    stats = limit.stats()
    assert (stats.running, stats.waiting, stats.keys) == (0, 0, {})


async def test_tenants_take_turns() -> None:
    gate, limit = Gate(), LimitConcurrency(1)
    agent = service(gate, limit)
    async with anyio.create_task_group() as group:
        for tenant, calls in (("busy", 4), ("b", 2), ("c", 1)):
            for number in range(calls):
                group.start_soon(agent.run_async, f"{tenant}{number}", {"tenant": tenant})
        await settled()
        stats = limit.stats()
        assert {key: (one.running, one.waiting) for key, one in stats.keys.items()} == {
            "busy": (1, 3),
            "b": (0, 2),
            "c": (0, 1),
        }
        gate.open()
    assert gate.begun == ["busy0", "busy1", "b0", "c0", "busy2", "b1", "busy3"]


async def test_one_tenant_may_be_limited_to_fewer_places() -> None:
    gate = Gate()
    agent = service(gate, LimitConcurrency(3, "user.team", each=2))
    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(agent.run_async, f"a{number}", {"user": {"team": "a"}})
        group.start_soon(agent.run_async, "b0", {"user": {"team": "b"}})
        await settled()
        assert gate.begun == ["a0", "a1", "b0"]
        gate.open()


@pytest.mark.parametrize(
    ("per", "context", "key"),
    [
        ("tenant", {"tenant": 7}, 7),
        ("a.b", {"a.b": "x", "a": {"b": "y"}}, "x"),
        ("a.b", {"a": {"b": "y"}}, "y"),
        ("a.b", {"a": "no mapping"}, None),
        ("tenant", {"tenant": ""}, None),
        (None, {"tenant": "x"}, None),
        (lambda context: context["who"] * 2, {"who": "x"}, "xx"),
        ("tenant", {"tenant": UUID(int=1)}, UUID(int=1)),
    ],
)
async def test_the_key_comes_from_the_context(per: Any, context: dict[str, Any], key: Any) -> None:
    gate, limit = Gate(), LimitConcurrency(1, per)
    agent = service(gate, limit)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run_async, "a", context)
        await settled()
        assert list(limit.stats().keys) == [key]
        gate.open()


@pytest.mark.parametrize("tenant", [["list"], True, 1.5, object()])
async def test_a_key_that_cannot_be_compared_safely_is_an_error(tenant: Any) -> None:
    agent = service([DONE], LimitConcurrency(1))
    with pytest.raises(RunKeyError, match=r"E175\] LimitConcurrency: context\['tenant'\] must be a str"):
        await agent.run_async("a", {"tenant": tenant})


async def test_a_full_queue_is_an_error_that_names_the_key() -> None:
    gate, limit = Gate(), LimitConcurrency(1, max_waiting=1)
    agent = service(gate, limit)
    async with anyio.create_task_group() as group:
        for number in range(2):
            group.start_soon(agent.run_async, str(number), {"tenant": "busy"})
        await settled()
        with pytest.raises(QueueFullError) as caught:
            await agent.run_async("2", {"tenant": "busy"})
        group.start_soon(agent.run_async, "other", {"tenant": "calm"})  # has a queue of its own
        await settled()
        assert limit.stats().waiting == 2
        gate.open()
    error = caught.value
    assert str(error).endswith("Queue full: 1 model calls of 'busy' already wait for one of 1 places")
    assert (error.key, error.what, error.waiting, error.limit) == ("busy", "model calls", 1, 1)
    assert limit.stats().refused == 1
    assert gate.begun == ["0", "1", "other"]


async def test_waiting_too_long_is_a_timeout() -> None:
    gate, limit = Gate(), LimitConcurrency(1, max_wait=30)
    agent = service(gate, limit)
    errors: list[Exception] = []

    async def wait() -> None:
        try:
            await agent.run_async("late")
        except QueueTimeoutError as error:
            errors.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(agent.run_async, "first")
        await settled()
        group.start_soon(wait)
        await settled()
        let_pass(31)
        await settled()
        assert [str(error) for error in errors] == [
            "[kantan-agents][E174] No place after 30 s: model calls of None wait for one of 1 places"
        ]
        assert isinstance(errors[0], TimeoutError)
        assert limit.stats().waiting == 0
        assert limit.stats().timed_out == 1
        gate.open()
    assert gate.begun == ["first"]


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    gate, limit = Gate(), LimitConcurrency(1)
    agent = service(gate, limit)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run_async, "first")
        await settled()
        leaving = asyncio.create_task(agent.run_async("leaving"))
        await settled()
        group.start_soon(agent.run_async, "last")
        await settled()
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        assert limit.stats().waiting == 1
        gate.open()
    assert gate.begun == ["first", "last"]
    assert limit.stats().keys == {}


async def test_a_place_that_arrives_with_a_cancellation_goes_to_the_next() -> None:
    gate, limit = Gate(), LimitConcurrency(1)
    agent = service(gate, limit)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run_async, "first")
        await settled()
        leaving = asyncio.create_task(agent.run_async("leaving"))
        await settled()
        group.start_soon(agent.run_async, "last")
        await settled()
        gate.is_open = True
        gate.waiting[0].set()
        while limit.stats().waiting == 2:
            await anyio.lowlevel.checkpoint()
        leaving.cancel()  # it has the place, and does not know it yet
        with pytest.raises(asyncio.CancelledError):
            await leaving
    assert gate.begun[-1] == "last"
    assert limit.stats().running == 0


async def test_a_deadline_ends_the_wait() -> None:
    gate, limit = Gate(), LimitConcurrency(1)
    agent = service(gate, Deadline(20), limit)
    failed: list[Exception] = []

    async def late() -> None:
        try:
            await agent.run_async("late")
        except DeadlineExceededError as error:
            failed.append(error)

    async with anyio.create_task_group() as group:
        place = limit._places.enter(None)
        group.start_soon(late)
        await settled()
        let_pass(25)
        await settled()
        assert len(failed) == 1
        assert isinstance(place, HeldPlace)
        limit._places.leave(place, is_overloaded=None)
    assert limit.stats().keys == {}


def nested(limit: LimitConcurrency) -> tuple[Agent, list[int]]:
    seen: list[int] = []
    inner = Agent("inner", "x", model=ScriptedModel([DONE] * 3), middleware=[("inner limit", limit)])

    async def ask() -> str:
        seen.append(limit.stats().running)
        await inner.run_async("in", {"tenant": "a"})
        return "asked"

    outer = Agent(
        "outer",
        "x",
        model=ScriptedModel([[function_call("ask", {}, call_id="c1")], DONE]),
        tools=[ask],
        middleware=[("limit", limit)],
    )
    return outer, seen


@pytest.mark.parametrize(("of", "held"), [("model_calls", 0), ("runs", 1)])
async def test_a_run_inside_a_run_of_the_same_tenant_does_not_wait_for_it(of: Any, held: int) -> None:
    limit = LimitConcurrency(1, of=of)
    outer, seen = nested(limit)
    with anyio.fail_after(10):
        await outer.run_async("out", {"tenant": "a"})
    assert seen == [held]
    assert limit.stats().running == 0


async def test_a_run_that_outlives_the_run_around_it_needs_a_place_of_its_own() -> None:
    limit = LimitConcurrency(1, of="runs")
    gate = Gate()
    inner = service(gate, limit)
    tasks: list[asyncio.Task[Any]] = []
    released = anyio.Event()

    async def later() -> None:
        await released.wait()
        await inner.run_async("inner")

    async def begin() -> str:
        tasks.append(asyncio.create_task(later()))
        return "begun"

    outer = Agent(
        "outer",
        "x",
        model=ScriptedModel([[function_call("begin", {}, call_id="c1")], DONE]),
        tools=[begin],
        middleware=[limit],
    )
    await outer.run_async("out")
    released.set()
    await settled()
    assert limit.stats().running == 1
    gate.open()
    await asyncio.gather(*tasks)


async def test_with_runs_a_whole_run_has_one_place() -> None:
    gate, limit = Gate(), LimitConcurrency(1, of="runs", max_wait=None)
    agent = service(gate, limit)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run_async, "a")
        group.start_soon(agent.run_async, "b")
        await settled()
        assert repr(limit) == "LimitConcurrency(1, per='tenant', of='runs', running=1, waiting=1)"
        gate.open()
    assert gate.most == 1


async def test_limits_for_runs_and_for_calls_go_together() -> None:
    agent = service([DONE], LimitConcurrency(5, of="runs"), LimitConcurrency(2), LimitConcurrency(3))
    context = await agent.run_async("a")
    assert context["result"].final_output == "Done."


async def test_sdk_agents_as_tools_do_not_deadlock() -> None:
    helper = SDKAgent("helper", model=ScriptedModel([DONE]))
    agent = Agent(
        "outer",
        "x",
        model=ScriptedModel([[function_call("helper", {"input": "go"}, call_id="c1")], DONE]),
        tools=[helper.as_tool("helper", "helps")],
        middleware=[LimitConcurrency(1)],
    )
    with anyio.fail_after(10):
        assert (await agent.run_async("q"))["result"].final_output == "Done."


async def test_streams_hold_their_place_until_they_end() -> None:
    limit = LimitConcurrency(1)
    agent = Agent("service", "x", model=ScriptedModel(lambda _: "Some words."), middleware=[limit])
    running: list[int] = []
    async with agent.stream("q") as stream:
        async for event in stream:
            if event.type == "text_delta":
                running.append(limit.stats().running)
    assert running
    assert set(running) == {1}
    assert limit.stats().running == 0


def test_places_are_shared_by_threads_and_loops() -> None:
    limit = LimitConcurrency(3)
    lock = threading.Lock()
    running = Counter[str]()
    most = [0]

    async def answer(_: Any) -> Any:
        with lock:
            running["now"] += 1
            most[0] = max(most[0], running["now"])
        await anyio.sleep(0.001)
        with lock:
            running["now"] -= 1
        return DONE

    agent = service(answer, limit)
    errors: list[Exception] = []

    async def many(name: str) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(agent.run_async, "q", {"tenant": name})

    def work(name: str) -> None:
        try:
            if name == "sync":
                for _ in range(5):
                    agent.run("q", {"tenant": name})
            else:
                asyncio.run(many(name))
        except Exception as error:  # noqa: BLE001 - asserted below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b", "c", "sync")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert not any(thread.is_alive() for thread in threads)
    assert 1 <= most[0] <= 3
    stats = limit.stats()
    assert (stats.running, stats.waiting) == (0, 0)


def test_a_waiter_whose_loop_is_closed_does_not_keep_a_place() -> None:
    places = Places(Window(1, adapts=True), None, 10)
    first = places.enter("a")
    assert isinstance(first, HeldPlace)

    async def wait() -> Any:
        return places.enter("a")

    lost = asyncio.run(wait())  # the loop is closed while it is in the queue

    async def rest() -> None:
        waiter: Any = places.enter("b")
        places.leave(first, is_overloaded=None)
        await waiter.signal.wait()
        places.leave(waiter.place, is_overloaded=None)

    asyncio.run(rest())
    assert places.withdraw(lost) is None
    assert places.stats().running == 0


def rate_limited(**headers: str) -> openai.RateLimitError:
    request = httpx.Request("POST", "http://127.0.0.1/")
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx.Response(429, headers=names, request=request)
    return openai.RateLimitError("slow down", response=response, body=None)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (rate_limited(retry_after="7"), 7.0),
        (rate_limited(retry_after_ms="250"), 0.25),
        (rate_limited(retry_after="3600"), 60.0),
        (rate_limited(retry_after="-5"), 0.0),
        (rate_limited(retry_after="soon"), 0.0),
        (rate_limited(), 0.0),
        (rate_limited(x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="1m0.5s"), 60.0),
        (rate_limited(x_ratelimit_remaining_tokens="0", x_ratelimit_reset_tokens="120ms"), 0.12),
        (rate_limited(x_ratelimit_remaining_tokens="0", x_ratelimit_reset_tokens="1x"), 0.0),
        (rate_limited(x_ratelimit_remaining_requests="3", x_ratelimit_reset_requests="9s"), 0.0),
        (
            rate_limited(
                anthropic_ratelimit_tokens_remaining="0",
                anthropic_ratelimit_tokens_reset="9999-01-01T00:00:00Z",
            ),
            60.0,
        ),
        (ProviderRequestError(provider="p", status=529, reason="busy", retry_after=2.0), 2.0),
    ],
)
def test_how_long_a_provider_asks_to_wait(error: Exception, seconds: float) -> None:
    assert pause_after(error) == pytest.approx(seconds)


async def test_a_retry_after_pauses_its_key_only(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    let_pass(0)
    monkeypatch.setattr(places_module, "monotonic", loop.time)
    answers: dict[str, Any] = {"limited": rate_limited(retry_after="20")}
    begun: list[str] = []

    def answer(call: Any) -> Any:
        begun.append(call.input if isinstance(call.input, str) else call.input[-1]["content"])
        return answers.pop(begun[-1], DONE)

    limit = LimitConcurrency(4)
    agent = service(answer, limit)
    with pytest.raises(openai.RateLimitError):
        await agent.run_async("limited", {"tenant": "a"})
    assert limit.stats().keys["a"].paused == pytest.approx(20, abs=5)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run_async, "a1", {"tenant": "a"})
        group.start_soon(agent.run_async, "b1", {"tenant": "b"})
        await settled()
        assert begun == ["limited", "b1"]
        let_pass(21)
    assert begun == ["limited", "b1", "a1"]
    assert limit.stats().keys == {}


async def test_a_pause_also_applies_to_those_who_wait_already(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    let_pass(0)
    monkeypatch.setattr(places_module, "monotonic", loop.time)
    places = Places(Window(1, adapts=False), None, 10)
    first: Any = places.enter("a")
    limit = LimitConcurrency(1)
    limit._places = places
    agent = service(lambda _: DONE, limit)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run_async, "q", {"tenant": "a"})
        await settled()
        places.leave(first, is_overloaded=True, pause=10)
        await settled()
        assert places.stats().keys["a"].waiting == 1
        let_pass(11)
    assert places.stats().keys == {}


def test_the_window_is_halved_once_for_calls_that_were_made_together_and_grows_by_one() -> None:
    window = Window(16, adapts=True)
    for _ in range(5):  # all of them began before the first failed
        window.learn(0, is_overloaded=True)
    assert window.size == 8
    for _ in range(9):
        window.learn(1, is_overloaded=False)
    assert window.size == 9
    for round_ in range(1, 20):
        window.learn(round_, is_overloaded=True)
    assert window.size == 1
    for _ in range(1000):
        window.learn(99, is_overloaded=False)
    assert window.size == 16


async def test_rate_limits_of_a_server_lower_the_limit_and_answers_raise_it() -> None:
    limited = Reply(status=429, headers={"retry-after-ms": "1"})
    with OfflineServer([limited, *["Fine."] * 20]) as server:
        limit = LimitConcurrency(4)
        agent = Agent("a", "x", model=server.bundle(), middleware=[Retry(3, initial_delay=0), limit])
        await agent.run_async("q")
        assert limit.stats().limit == 2
        assert "limit=2" in repr(limit)
        for _ in range(6):
            await agent.run_async("q")
        assert limit.stats().limit == 4


USED_UP = {
    "x-ratelimit-limit-requests": "3",
    "x-ratelimit-remaining-requests": "0",
    "x-ratelimit-reset-requests": "60s",
}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (USED_UP, 20.0),
        ({**USED_UP, "x-ratelimit-limit-requests": "5000"}, 0.012),
        ({**USED_UP, "x-ratelimit-limit-requests": "0"}, 6.0),
        ({**USED_UP, "x-ratelimit-limit-requests": "many"}, 6.0),
        ({**USED_UP, "x-ratelimit-limit-requests": "9" * 5_000}, 6.0),
        ({**USED_UP, "x-ratelimit-reset-requests": "24h"}, 60.0),
        (
            {
                "x-ratelimit-limit-tokens": "3",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "30s",
            },
            3.0,
        ),
        (
            {
                **USED_UP,
                "x-ratelimit-limit-tokens": "150000",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "4m",
            },
            24.0,
        ),
    ],
)
def test_how_long_a_used_up_limit_pauses_after_an_answer(headers: dict[str, str], seconds: float) -> None:
    assert pause_of_answer(headers) == pytest.approx(seconds)


def test_while_a_limit_is_used_up_calls_begin_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(places_module, "monotonic", lambda: now)

    async def wait() -> None:
        nonlocal now
        places = Places(Window(8, adapts=True), None, 100)
        places.keep_apart("a", 2.0)
        waiting = [places.enter("a") for _ in range(12)]
        assert all(isinstance(one, Waiter) for one in waiting)
        assert isinstance(places.enter("b"), HeldPlace)
        for begun in range(1, 4):
            now += 1.9
            places.serve()
            assert served(waiting) == begun - 1
            now += 0.2
            places.serve()
            places.serve()
            assert served(waiting) == begun
        places.keep_apart("a", 0.0)
        now += 2.1
        places.serve()
        assert served(waiting) == 7  # and one place is that of "b"

    anyio.run(wait)


def served(waiting: list[Any]) -> int:
    """Return how many have a place."""
    return sum(one.place is not None for one in waiting)


async def test_those_who_wait_are_served_as_a_limit_is_refilled() -> None:
    headers = {**USED_UP, "x-ratelimit-limit-requests": "600"}
    with OfflineServer([Reply("Fine.", headers=headers)] * 4) as server:
        limit = LimitConcurrency(2, max_wait=20)
        agent = Agent("a", "x", model=server.bundle(), middleware=[limit])
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(agent.run_async, "q", {"tenant": "a"})
    assert len(server.requests) == 4
    assert limit.stats().timed_out == 0


@pytest.mark.parametrize("of", ["model_calls", "runs"])
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_an_answer_that_uses_up_a_limit_pauses_its_key(of: Any, is_streamed: bool, api: Any) -> None:
    with OfflineServer([Reply("Fine.", headers=USED_UP), "Fine."]) as server:
        limit = LimitConcurrency(4, of=of, max_waiting=0)
        agent = Agent("a", "x", model=server.bundle(api=api), middleware=[limit])
        if is_streamed:
            async with agent.stream("q", {"tenant": "a"}) as run:
                _ = [event async for event in run]
        else:
            await agent.run_async("q", {"tenant": "a"})
        assert limit.stats().keys["a"].paused == pytest.approx(20, abs=10)
        assert limit.stats().limit == 4
        with pytest.raises(QueueFullError):
            await agent.run_async("q", {"tenant": "a"})
        await agent.run_async("q", {"tenant": "b"})
        assert len(server.requests) == 2


async def test_the_pause_begins_with_the_headers_and_not_with_the_end_of_the_answer() -> None:
    paused: list[float] = []

    def look(event: Event) -> None:
        if event.type == "text_delta":
            paused.append(limit.stats().keys["a"].paused)

    with OfflineServer([Reply("Fine.", headers=USED_UP)]) as server:
        limit = LimitConcurrency(4)
        agent = Agent("a", "x", model=server.bundle(), middleware=[limit])
        agent.subscribe(look)
        async with agent.stream("q", {"tenant": "a"}) as run:
            _ = [event async for event in run]
    assert paused
    assert min(paused) > 0


async def test_a_provider_of_this_package_reports_its_limits_too() -> None:
    in_some_minutes = (datetime.now(timezone.utc) + timedelta(seconds=500)).isoformat().replace("+00:00", "Z")
    headers = {
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": in_some_minutes,
    }
    with WireServer([Body(recorded("anthropic_citations"), headers=headers)]) as server:
        limit = LimitConcurrency(4)
        provider = AnthropicProvider("claude-x", api_key="k", base_url=server.url)
        await Agent("a", "x", model=provider, middleware=[limit]).run_async("q", {"tenant": "a"})
    assert 0 < limit.stats().keys["a"].paused <= 60


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "20s"},
        {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "soon"},
        {"x-ratelimit-remaining-requests": "0"},
        {"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "soon"},
        {
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2001-01-01T00:00:00Z",
        },
    ],
)
async def test_an_answer_that_leaves_something_pauses_nothing(headers: dict[str, str]) -> None:
    with OfflineServer([Reply("Fine.", headers=headers)]) as server:
        limit = LimitConcurrency(4)
        agent = Agent("a", "x", model=server.bundle(), middleware=[limit])
        await agent.run_async("q", {"tenant": "a"})
    assert limit.stats().keys == {}


async def test_without_adapting_nothing_pauses() -> None:
    with OfflineServer([Reply("Fine.", headers=USED_UP)]) as server:
        limit = LimitConcurrency(4, adaptive=False)
        await Agent("a", "x", model=server.bundle(), middleware=[limit]).run_async("q", {"tenant": "a"})
        with pytest.raises(openai.RateLimitError):
            await service([rate_limited(retry_after="7")], limit).run_async("q", {"tenant": "a"})
    assert limit.stats().keys == {}


async def test_without_adapting_the_limit_stays() -> None:
    agent_limit = LimitConcurrency(4, adaptive=False)
    agent = service([rate_limited(), DONE], agent_limit)
    with pytest.raises(openai.RateLimitError):
        await agent.run_async("q")
    assert agent_limit.stats().limit == 4


async def test_an_account_without_credit_is_not_overload() -> None:
    error = rate_limited()
    error.code = "insufficient_quota"
    limit = LimitConcurrency(4)
    with pytest.raises(openai.RateLimitError):
        await service([error], limit).run_async("q")
    assert limit.stats().limit == 4


async def test_the_error_belongs_to_its_run() -> None:
    limit = LimitConcurrency(1, max_waiting=0)
    place = limit._places.enter(None)
    agent = service([DONE], limit)
    with pytest.raises(QueueFullError) as caught:
        await agent.run_async("q")
    run = run_of(caught.value)
    assert run is not None
    assert run.agent is agent
    assert isinstance(place, HeldPlace)


@pytest.mark.parametrize(
    ("make", "option"),
    [
        (lambda: LimitConcurrency(0), "n"),
        (lambda: LimitConcurrency(True), "n"),
        (lambda: LimitConcurrency(1, ""), "per"),
        (lambda: LimitConcurrency(1, "a..b"), "per"),
        (lambda: LimitConcurrency(1, 5), "per"),  # type: ignore[arg-type]
        (lambda: LimitConcurrency(1, of="tools"), "of"),  # type: ignore[arg-type]
        (lambda: LimitConcurrency(1, each=0), "each"),
        (lambda: LimitConcurrency(1, max_waiting=-1), "max_waiting"),
        (lambda: LimitConcurrency(1, max_wait=-1), "max_wait"),
        (lambda: LimitConcurrency(1, adaptive=1), "adaptive"),  # type: ignore[arg-type]
    ],
)
def test_invalid_options(make: Callable[[], Any], option: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"E75\] Invalid option {option}:"):
        make()


STEPS = st.lists(st.tuples(st.sampled_from(["enter", "leave", "withdraw"]), st.integers(0, 3)), max_size=60)


@given(STEPS, st.integers(1, 3), st.none() | st.integers(1, 2))
def test_no_sequence_exceeds_a_limit_or_loses_a_place(
    steps: list[tuple[str, int]], most: int, each: int | None
) -> None:
    async def act() -> None:
        places = Places(Window(most, adapts=False), each, 5)
        taken: list[HeldPlace] = []
        waiting: list[Any] = []
        for step, number in steps:
            if step == "enter":
                found: Any = places.enter(number)
                if isinstance(found, HeldPlace):
                    taken.append(found)
                elif not isinstance(found, int):
                    waiting.append(found)
            elif step == "leave" and taken:
                places.leave(taken.pop(number % len(taken)), is_overloaded=None)
            elif step == "withdraw" and waiting:
                place = places.withdraw(waiting.pop(number % len(waiting)))
                if place is not None:
                    taken.append(place)
            taken += [waiter.place for waiter in waiting if waiter.place is not None]
            waiting = [waiter for waiter in waiting if waiter.place is None]
            stats = places.stats()
            running = Counter(place.key for place in taken)
            assert stats.running == len(taken) <= most
            assert stats.waiting == len(waiting)
            assert all(count <= (each or most) for count in running.values())
            if len(taken) < most:  # nobody waits beside a free place
                assert all(each is not None and running[waiter.key] >= each for waiter in waiting)
        while taken or waiting:
            while taken:
                places.leave(taken.pop(), is_overloaded=None)
            taken += [waiter.place for waiter in waiting if waiter.place is not None]
            waiting = [waiter for waiter in waiting if waiter.place is None]
            assert taken or not waiting
        assert places.stats().keys == {}

    asyncio.run(act())
