from __future__ import annotations

import asyncio
import dataclasses
import logging
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pydantic
import pytest
from agents import Agent as SDKAgent
from agents import ModelRefusalError, ModelSettings, RunConfig, Usage
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseOutputMessage, ResponseOutputRefusal

from kantan_agents import (
    Agent,
    Middleware,
    Recording,
    SQLiteRecorder,
    TraceStore,
    record_traces,
    replay_async,
)
from kantan_agents.core.events import ModelCallFinished, TextDelta
from kantan_agents.errors import BudgetExceededError, InvalidOptionError, RunKeyError, StructuredOutputError
from kantan_agents.middleware import (
    Budget,
    Cache,
    CacheStore,
    Deadline,
    Fallback,
    MemoryStore,
    Redact,
    SQLiteStore,
)
from kantan_agents.testing import ModelStep, OfflineServer, ScriptedModel, assistant_message, function_call


class Counting(ScriptedModel):
    """A model that answers each request with its number."""

    def __init__(self, answer: Callable[[Any], Any] | None = None) -> None:
        self.asked = 0
        self.given = answer
        super().__init__(self._count)

    async def _count(self, call: Any) -> Any:
        self.asked += 1
        if self.given is None:
            return spending(f"Answer {self.asked}.")
        found = self.given(call)
        return await found if asyncio.iscoroutine(found) else found


def spending(text: str, read: int = 10, written: int = 5) -> ModelStep:
    usage = Usage(requests=1, input_tokens=read, output_tokens=written, total_tokens=read + written)
    return ModelStep(output=[assistant_message(text)], usage=usage)


def caching(model: Any, *middleware: Any, **options: Any) -> Agent[Any]:
    return Agent("helper", options.pop("instructions", "x"), model=model, middleware=[*middleware], **options)


async def output(agent: Agent[Any], text: Any = "Hi", context: Any = None, **options: Any) -> str:
    given = {"tenant": "a"} if context is None else context
    return str((await agent.run_async(text, given, **options))["result"].final_output)


async def streamed(agent: Agent[Any], text: str = "Hi", **context: Any) -> tuple[str, list[Any]]:
    events: list[Any] = []
    async with agent.stream(text, {"tenant": "a", **context}) as stream:
        async for event in stream:
            events.append(event)
    return str(stream.context["result"].final_output), events


async def test_an_equal_request_gets_the_stored_answer() -> None:
    model, cache = Counting(), Cache()
    agent = caching(model, cache)
    assert [await output(agent) for _ in range(3)] == ["Answer 1."] * 3
    assert await output(agent, "Something else") == "Answer 2."
    assert model.asked == 2
    stats = cache.stats()
    assert (stats.hits, stats.misses, stats.tokens) == (2, 2, 30)
    assert repr(cache) == "Cache(MemoryStore(2 answers), ttl=3600, per='tenant', hits=2, misses=2)"


def look() -> str:
    return "seen"


def peek() -> str:
    return "seen"


class Out(pydantic.BaseModel):
    text: str


@pytest.mark.parametrize(
    "changed",
    [
        {"instructions": "y"},
        {"model_settings": ModelSettings(temperature=0.5)},
        {"model_settings": ModelSettings(extra_headers={"x-mode": "b"})},
        {"tools": [look]},
        {"tools": [look, peek]},
        {"handoffs": [SDKAgent("other")]},
        {"model": "another"},
    ],
    ids=["instructions", "settings", "headers", "a tool", "tools", "hand-offs", "model"],
)
async def test_whatever_is_asked_otherwise_is_another_request(changed: dict[str, Any]) -> None:
    model, cache = Counting(), Cache()
    await output(caching(model, cache))
    other = Counting() if "model" in changed else model
    options = {name: value for name, value in changed.items() if name != "model"}
    await output(caching(other, cache, **options))
    assert (cache.stats().hits, cache.stats().misses) == (0, 2)
    await output(caching(other, cache, **options))
    assert cache.stats().hits == 1


async def test_which_agent_asks_and_how_often_it_retries_makes_no_difference() -> None:
    model, cache = Counting(), Cache()
    await output(caching(model, cache))
    again = Agent("another name", "x", model=model, middleware=[cache])
    assert await output(again) == "Answer 1."


@pytest.mark.parametrize("key", ["agents-sdk:1", "mine"])
async def test_a_key_that_the_sdk_makes_up_for_each_run_does_not_count(key: str) -> None:
    model, cache = Counting(), Cache()
    for number in range(2):
        settings = ModelSettings(extra_args={"prompt_cache_key": f"{key}{number}"})
        await output(caching(model, cache, model_settings=settings))
    assert cache.stats().hits == (1 if key.startswith("agents-sdk:") else 0)


async def test_tenants_do_not_get_each_others_answers() -> None:
    model = Counting()
    agent = caching(model, Cache())
    answers = [await output(agent, context={"tenant": tenant}) for tenant in ("a", "b", 1, "1", "a", "b")]
    assert answers == ["Answer 1.", "Answer 2.", "Answer 3.", "Answer 4.", "Answer 1.", "Answer 2."]


async def test_tenants_do_not_share_an_answer_that_is_being_made() -> None:
    gate = anyio.Event()

    async def answer(call: Any) -> Any:
        await gate.wait()
        return "Fine."

    model = Counting(answer)
    agent = caching(model, Cache())
    async with anyio.create_task_group() as group:
        for tenant in ("a", "b", "a"):
            group.start_soon(output, agent, "Hi", {"tenant": tenant})
        await settled()
        assert model.asked == 2
        gate.set()


async def test_a_run_without_a_tenant_is_an_error() -> None:
    model = Counting()
    agent = caching(model, Cache())
    for context in ({}, {"tenant": None}, {"tenant": ""}):
        with pytest.raises(RunKeyError, match=r"E175\] Cache: context\['tenant'\] is missing; with per=None"):
            await output(agent, context=context)
    assert model.asked == 0


async def test_without_per_all_runs_share_answers() -> None:
    agent = caching(Counting(), Cache(per=None))
    assert [await output(agent, context=context) for context in ({}, {"tenant": "b"})] == ["Answer 1."] * 2


async def settled(times: int = 60) -> None:
    for _ in range(times):
        await anyio.lowlevel.checkpoint()


class Held:
    """Answers wait until the test lets them go on."""

    def __init__(self) -> None:
        self.outcomes: list[Any] = []
        self.events: list[anyio.Event] = []

    async def __call__(self, call: Any) -> Any:
        event = anyio.Event()
        self.events.append(event)
        await event.wait()
        found = self.outcomes.pop(0) if self.outcomes else "Fine."
        if isinstance(found, Exception):
            raise found
        return found


async def test_of_equal_requests_at_once_one_is_made() -> None:
    held = Held()
    model, cache = Counting(held), Cache()
    agent = caching(model, cache)
    answers: list[str] = []

    async def ask() -> None:
        answers.append(await output(agent))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(ask)
        await settled()
        assert model.asked == 1
        held.events[0].set()
    assert answers == ["Fine."] * 5
    assert (cache.stats().misses, cache.stats().shared) == (1, 4)
    assert cache._flights.count == 0


async def test_if_the_one_that_is_made_fails_the_others_ask_for_themselves() -> None:
    held = Held()
    held.outcomes = [ConnectionError("lost")]
    model = Counting(held)
    agent = caching(model, Cache())
    async with anyio.create_task_group() as group:
        failing = asyncio.create_task(output(agent))
        await settled()
        for _ in range(2):
            group.start_soon(output, agent)
        await settled()
        held.events[0].set()
        with pytest.raises(ConnectionError):
            await failing
        await settled()
        assert model.asked == 3
        for event in held.events:
            event.set()


async def test_if_the_one_that_is_made_is_cancelled_another_takes_its_place() -> None:
    held = Held()
    model, cache = Counting(held), Cache()
    agent = caching(model, cache)
    leader = asyncio.create_task(output(agent))
    await settled()
    waiting = [asyncio.create_task(output(agent)) for _ in range(3)]
    await settled()
    waiting[0].cancel()  # it would be the next
    leader.cancel()
    await settled()
    assert model.asked == 2
    held.events[1].set()
    assert await asyncio.gather(*waiting[1:]) == ["Fine."] * 2
    for task in (leader, waiting[0]):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert cache._flights.count == 0


async def test_the_last_one_that_is_cancelled_leaves_nothing_behind() -> None:
    held = Held()
    model, cache = Counting(held), Cache()
    agent = caching(model, cache)
    tasks = [asyncio.create_task(output(agent)) for _ in range(2)]
    await settled()
    tasks[0].cancel()
    await anyio.lowlevel.checkpoint()
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert cache._flights.count == 0


async def test_a_request_does_not_wait_for_an_equal_one_for_ever() -> None:
    held = Held()
    model = Counting(held)
    agent = caching(model, Cache(max_wait=0))
    tasks = [asyncio.create_task(output(agent)) for _ in range(2)]
    await settled()
    assert model.asked == 2
    for event in held.events:
        event.set()
    assert await asyncio.gather(*tasks) == ["Fine."] * 2


def test_equal_requests_of_several_threads_are_made_once() -> None:
    held = threading.Event()

    async def answer(_: Any) -> Any:
        await anyio.to_thread.run_sync(held.wait)
        return "Fine."

    model, cache = Counting(answer), Cache()
    agent = caching(model, cache)
    answers: list[str] = []

    def work() -> None:
        answers.append(asyncio.run(output(agent)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while sum(map(len, cache._flights._open.values())) < 3:
        assert any(thread.is_alive() for thread in threads)
    held.set()
    for thread in threads:
        thread.join(30)
    assert answers == ["Fine."] * 4
    assert model.asked == 1


async def test_a_hit_has_no_usage_and_is_marked() -> None:
    agent = caching(Counting(), Cache())
    await output(agent)
    seen: list[Any] = []
    with agent.subscribe(seen.append):
        context = await agent.run_async("Hi", {"tenant": "a"})
    usage = context["result"].context_wrapper.usage
    assert (usage.requests, usage.total_tokens) == (0, 0)
    (finished,) = [event for event in seen if isinstance(event, ModelCallFinished)]
    assert finished.from_cache
    assert finished.usage == {
        "requests": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "total_tokens": 0,
        "requests_without_usage": 0,
    }
    assert seen[-1].usage["requests"] == 0


@pytest.mark.parametrize("is_outside", [False, True])
async def test_a_budget_is_not_charged_for_a_hit(is_outside: bool) -> None:
    budget = Budget(max_model_calls=2, max_tokens=100, on_unknown_usage="raise")
    order = [budget, Cache()] if is_outside else [Cache(), budget]
    agent = caching(Counting(), *order)
    for _ in range(5):
        assert await output(agent) == "Answer 1."
    used = budget.used()
    assert (used.model_calls, used.tokens, used.calls_without_usage) == (1, 15, 0)


async def test_a_used_up_budget_inside_the_cache_refuses_only_what_is_not_stored() -> None:
    agent = caching(Counting(), Cache(), Budget(max_model_calls=1))
    await output(agent)
    assert await output(agent) == "Answer 1."
    with pytest.raises(BudgetExceededError):
        await output(agent, "Another")


async def test_a_used_up_budget_before_the_cache_gives_no_stored_answer() -> None:
    model, cache = Counting(), Cache()
    await output(caching(model, cache))
    agent = caching(model, Budget(max_model_calls=0), cache)
    with pytest.raises(BudgetExceededError):
        await output(agent)
    assert (cache.stats().hits, model.asked) == (0, 1)


async def test_a_streamed_run_gets_the_stored_answer_as_a_stream() -> None:
    model = Counting()
    agent = caching(model, Cache())
    await output(agent)
    text, events = await streamed(agent)
    assert text == "Answer 1."
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Answer 1."
    kinds = [event.type for event in events if event.type.startswith(("model_call", "text"))]
    assert kinds == ["model_call_started", "text_delta", "model_call_finished"]
    assert events[-1].usage["requests"] == 0
    assert model.asked == 1


async def test_the_answer_of_a_stream_is_stored() -> None:
    model = Counting()
    agent = caching(model, Cache())
    first, _ = await streamed(agent)
    assert await output(agent) == first
    assert (await streamed(agent))[0] == first
    assert model.asked == 1


async def test_a_stored_tool_call_runs_the_tool_again() -> None:
    ran: list[int] = []

    def count() -> str:
        ran.append(1)
        return "counted"

    def answer(call: Any) -> Any:
        has_result = any(item.get("type") == "function_call_output" for item in call.input)
        return "Done." if has_result else [function_call("count", {}, call_id="c1")]

    model = Counting(answer)
    agent = caching(model, Cache(), tools=[count])
    assert [await output(agent) for _ in range(2)] == ["Done."] * 2
    assert (model.asked, len(ran)) == (2, 2)
    assert (await streamed(agent))[0] == "Done."


async def test_structured_output_is_stored_if_it_fits() -> None:
    with OfflineServer(['{"wrong": 1}', '{"text": "right"}']) as server:
        agent = caching(server.bundle(), Cache(), output_type=Out)
        assert [await output(agent) for _ in range(3)] == ["text='right'"] * 3
        assert len(server.requests) == 2


async def test_structured_output_that_never_fits_is_not_stored() -> None:
    model = Counting(lambda _: "no JSON")
    agent = caching(model, Cache(), output_type=Out, output_repairs=0)
    asked = []
    for _ in range(2):
        with suppress(StructuredOutputError):
            await output(agent)
        asked.append(model.asked)
    assert asked[1] > asked[0]


@pytest.mark.parametrize("profile", [None, "openai", "anthropic", "deepseek"])
async def test_structured_output_in_any_form_needs_no_request_again(profile: str | None) -> None:
    with OfflineServer([{"text": "right"}] * 4, profile=profile) as server:
        agent = caching(server.bundle(), Cache(), output_type=Out)
        assert await output(agent) == "text='right'"
        made = len(server.requests)
        assert await output(agent) == "text='right'"
        text, events = await streamed(agent)
        assert text == "text='right'"
        assert "right" in "".join(event.text for event in events if isinstance(event, TextDelta))
        assert len(server.requests) == made


def refusal() -> ResponseOutputMessage:
    return ResponseOutputMessage(
        id="m1",
        content=[ResponseOutputRefusal(type="refusal", refusal="No.")],
        role="assistant",
        status="completed",
        type="message",
    )


def cut_off() -> Any:
    return assistant_message("Half of").model_copy(update={"status": "incomplete"})


@pytest.mark.parametrize("item", [refusal(), cut_off()], ids=["refusal", "incomplete"])
async def test_answers_that_are_not_complete_are_not_stored(item: Any) -> None:
    model = Counting(lambda _: [item])
    agent = caching(model, Cache())
    for _ in range(2):
        with suppress(ModelRefusalError):
            await output(agent)
    assert model.asked == 2


async def test_an_answer_that_reaches_max_tokens_is_not_stored() -> None:
    model = Counting(lambda _: spending("Half of", written=5))
    agent = caching(model, Cache(), model_settings=ModelSettings(max_tokens=5))
    for _ in range(2):
        await output(agent)
    assert model.asked == 2


async def test_errors_are_not_stored() -> None:
    outcomes: list[Any] = [ConnectionError("lost"), "Fine."]
    model = Counting(lambda _: outcomes.pop(0))
    agent = caching(model, Cache())
    with pytest.raises(ConnectionError):
        await output(agent)
    assert await output(agent) == "Fine."


async def test_conversations_at_the_provider_are_not_cached() -> None:
    model = Counting()
    cache = Cache()
    agent = caching(model, cache)
    for options in (
        {"previous_response_id": "r1"},
        {"conversation_id": "c1"},
        {"auto_previous_response_id": True},
    ):
        for _ in range(2):
            await output(agent, **options)
    assert model.asked == 6
    assert cache.stats().passed == 6


class Answering(Middleware):
    async def model_call(self, call: Any, call_next: Any) -> Any:
        answer = await Counting().get_response(
            call.instructions, call.input, call.settings, [], None, [], None,
            previous_response_id=None, conversation_id=None, prompt=None,
        )  # fmt: skip
        return dataclasses.replace(answer, usage=Usage(requests=1))


async def test_what_another_middleware_answers_is_not_stored() -> None:
    cache = Cache()
    agent = caching(Counting(), cache, Answering())
    for _ in range(2):
        await output(agent)
    assert (cache.stats().hits, cache.stats().misses) == (0, 2)


async def test_a_request_without_a_json_form_is_not_cached() -> None:
    model, cache = Counting(), Cache()
    agent = caching(model, cache, model_settings=ModelSettings(extra_args={"odd": object()}))
    for _ in range(2):
        await output(agent)
    assert model.asked == 2
    assert cache.stats().passed == 2


async def test_internal_calls_are_cached_apart_from_those_of_the_agent() -> None:
    class Summarize(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            await call_next(call.internally(instructions="Summarize."))
            return await call_next(call)

    model = Counting()
    agent = caching(model, Summarize(), Cache())
    assert [await output(agent) for _ in range(2)] == ["Answer 2."] * 2
    text, events = await streamed(agent)
    assert text == "Answer 2."
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Answer 2."


async def test_each_model_of_a_fallback_has_its_own_answers() -> None:
    down, up = Counting(lambda _: ConnectionError("down")), Counting()
    agent = caching(down, Fallback(up), Cache())
    assert [await output(agent) for _ in range(2)] == ["Answer 1."] * 2
    assert (down.asked, up.asked) == (2, 1)


async def test_a_deadline_that_ends_one_run_does_not_end_the_others() -> None:
    held = Held()
    model, cache = Counting(held), Cache()
    hasty, patient = caching(model, Deadline(0.05), cache), caching(model, cache)
    leader = asyncio.create_task(output(hasty))
    await settled()
    waiting = asyncio.create_task(output(patient))
    with pytest.raises(TimeoutError):
        await leader
    await settled()
    held.events[-1].set()
    assert await waiting == "Fine."


# The stores.


async def test_a_file_keeps_answers_for_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite3"
    with OfflineServer(["Once."]) as server:
        for cache in (Cache(path), Cache(str(path))):
            assert await output(caching(server.bundle(), cache)) == "Once."
        assert len(server.requests) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_model_without_a_name_is_not_mistaken_for_one_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Counting()
    await output(caching(model, Cache(tmp_path / "cache.sqlite3")))
    monkeypatch.setattr("kantan_agents.middleware.cache.recipient._PROCESS", "another")
    assert await output(caching(model, Cache(tmp_path / "cache.sqlite3"))) == "Answer 2."


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000_000.0
        monkeypatch.setattr("time.time", lambda: self.now)


def rows(path: Path) -> list[Any]:
    database = sqlite3.connect(path)
    try:
        return database.execute("SELECT key, expires, size, body FROM kantan_agents_cache").fetchall()
    finally:
        database.close()


async def test_expired_answers_are_asked_for_again_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    path = tmp_path / "cache.sqlite3"
    agent = caching(Counting(), Cache(path, ttl=100))
    assert [await output(agent), await output(agent, "Other")] == ["Answer 1.", "Answer 2."]
    clock.now += 101
    assert await output(agent) == "Answer 3."
    assert len(rows(path)) == 1


async def test_answers_in_memory_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    agent = caching(Counting(), Cache(ttl=100))
    await output(agent)
    clock.now += 101
    assert await output(agent) == "Answer 2."


async def test_a_shorter_time_also_counts_for_answers_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    model = Counting()
    await output(caching(model, Cache(tmp_path / "c", ttl=1000)))
    clock.now += 20
    assert await output(caching(model, Cache(tmp_path / "c", ttl=10))) == "Answer 2."


@pytest.mark.parametrize("damage", [b"", b"x", b"\x00" * 40, "half"])
async def test_a_damaged_entry_is_a_miss_with_a_log_line(
    tmp_path: Path, damage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cache.sqlite3"
    agent = caching(Counting(), Cache(path))
    await output(agent)
    (row,) = rows(path)
    database = sqlite3.connect(path)
    with database:
        body = row[3][:-3] if damage == "half" else damage
        database.execute("UPDATE kantan_agents_cache SET body = ?", (body,))
    database.close()
    with caplog.at_level(logging.WARNING, "kantan_agents.middleware"):
        assert await output(agent) == "Answer 2."
        assert await output(agent) == "Answer 2."  # it was replaced
    assert [record.msg for record in caplog.records] == ["a stored answer is damaged, the model is asked"]


async def test_an_entry_under_the_key_of_another_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite3"
    agent = caching(Counting(), Cache(path))
    await output(agent, context={"tenant": "a"})
    await output(agent, context={"tenant": "b"})
    (one, other) = rows(path)
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE kantan_agents_cache SET body = ? WHERE key = ?", (one[3], other[0]))
        database.execute("UPDATE kantan_agents_cache SET body = ? WHERE key = ?", (other[3], one[0]))
    database.close()
    assert await output(agent, context={"tenant": "a"}) == "Answer 3."


async def test_a_file_that_is_no_database_costs_no_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cache.sqlite3"
    path.write_bytes(b"no database" * 200)
    agent = caching(Counting(), Cache(path))
    with caplog.at_level(logging.WARNING, "kantan_agents.middleware"):
        assert [await output(agent) for _ in range(2)] == ["Answer 1.", "Answer 2."]
    assert len(caplog.records) == 2  # one for reading and one for writing
    assert "the cache cannot read: DatabaseError" in caplog.records[0].msg
    assert path.read_bytes() == b"no database" * 200


async def test_a_file_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    store = SQLiteStore(tmp_path / "cache.sqlite3", max_bytes=100)
    for number in range(12):
        clock.now += 61  # tidied once a minute
        await store.write(str(number), b"x" * 10, 10_000)
    left = [row[0] for row in rows(store.path)]
    assert sum(row[2] for row in rows(store.path)) <= 100
    assert "11" in left
    assert "0" not in left
    await store.write("large", b"x" * 101, 10_000)
    assert await store.read("large") is None
    await store.clear()
    assert rows(store.path) == []


async def test_memory_has_a_limit() -> None:
    store = MemoryStore(max_bytes=25)
    for number in range(5):
        await store.write(str(number), b"x" * 10, 60)
    await store.write("large", b"x" * 26, 60)
    assert len(store) == 2
    assert [await store.read(key) for key in ("0", "4", "large")] == [None, b"x" * 10, None]
    await store.remove("4")
    await store.clear()
    assert repr(store) == "MemoryStore(0 answers)"


async def test_clearing_removes_all_answers() -> None:
    cache = Cache()
    agent = caching(Counting(), cache)
    await output(agent)
    await cache.clear()
    assert await output(agent) == "Answer 2."


class Failing:
    is_persistent = True

    async def read(self, key: str) -> bytes | None:
        raise OSError("no disk")

    async def write(self, key: str, body: bytes, ttl: float) -> None:
        raise OSError("no disk")

    async def remove(self, key: str) -> None:
        raise OSError("no disk")

    async def clear(self) -> None:
        raise OSError("no disk")


async def test_a_store_that_fails_costs_no_run() -> None:
    store: CacheStore = Failing()
    model = Counting()
    agent = caching(model, Cache(store))
    assert await output(agent) == "Answer 1."
    assert await output(agent) == "Answer 2."


# What is not stored.


async def test_withheld_contents_are_not_written_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite3"
    model = Counting()
    withheld = RunConfig(trace_include_sensitive_data=False)
    await output(caching(model, Cache(path)), run_config=withheld)
    assert rows(path) == []
    await output(caching(model, Cache(path)))
    assert b"Answer" not in path.read_bytes() or len(rows(path)) == 1
    memory = caching(model, Cache())
    assert [await output(memory, run_config=withheld) for _ in range(2)] == ["Answer 3."] * 2


async def test_what_redact_finds_in_an_answer_is_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite3"
    model = Counting(lambda _: "Write to aiko@example.com.")
    agent = caching(model, Redact(), Cache(path))
    assert [await output(agent) for _ in range(2)] == ["Write to [email]."] * 2
    assert model.asked == 2
    assert rows(path) == []


async def test_a_redacted_request_gets_its_own_values_back(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite3"
    model = Counting(lambda _: "I have written to [email_1].")
    agent = caching(model, Redact(restore=True), Cache(path))
    answers = [await output(agent, f"Write to {name}@example.com") for name in ("aiko", "ben")]
    assert answers == [f"I have written to {name}@example.com." for name in ("aiko", "ben")]
    assert model.asked == 1  # the model was asked for the same, with placeholders
    text, events = await streamed(agent, "Write to cai@example.com")
    assert text == "I have written to cai@example.com."
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == text
    assert all(b"example.com" not in row[3] for row in rows(path))


async def test_people_in_the_instructions_are_distinguished() -> None:
    model = Counting()
    agent = caching(model, Redact(), Cache(), instructions="You talk to {{ $ctx.email }}.")
    answers = [
        await output(agent, context={"tenant": "a", "email": f"{name}@example.com"})
        for name in ("aiko", "ben", "aiko")
    ]
    assert answers == ["Answer 1.", "Answer 2.", "Answer 1."]


async def test_with_redact_inside_nothing_is_cached(caplog: pytest.LogCaptureFixture) -> None:
    model = Counting()
    agent = caching(model, Cache(), Redact(restore=True))
    with caplog.at_level(logging.WARNING, "kantan_agents.middleware"):
        assert [await output(agent) for _ in range(2)] == ["Answer 1.", "Answer 2."]
    assert [record.msg for record in caplog.records] == [
        "Redact is inside Cache, so nothing is cached; put it before"
    ]


# The trace.


@pytest.fixture
def recorder(tmp_path: Path) -> Any:
    made: SQLiteRecorder = record_traces(tmp_path / "traces.sqlite3")
    yield made
    made.shutdown()


async def test_a_hit_is_marked_in_the_trace_and_in_the_record(recorder: Any, tmp_path: Path) -> None:
    agent = caching(Counting(), Cache())
    for _ in range(2):
        await output(agent)
    recorder.force_flush()
    store = TraceStore(tmp_path / "traces.sqlite3")
    second, first = (one.trace_id for one in store.traces(limit=2))
    spans = {
        trace: [span for span in store.trace(trace).spans if span.name == "cache"]
        for trace in (first, second)
    }
    assert spans[first] == []
    data: Any = spans[second][0].raw
    assert data["span_data"]["data"]["shared"] is False
    assert len(data["span_data"]["data"]["request"]) == 64
    made, given = (Recording.from_trace(store, trace).root.model_calls[0] for trace in (first, second))
    assert (made.from_cache, given.from_cache) == (False, True)
    assert made.request.hash == given.request.hash
    assert given.answer is not None
    assert made.answer is not None
    assert given.answer.output == made.answer.output
    assert given.answer.usage["requests"] == 0


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_run_with_hits_is_replayed_without_the_cache(
    recorder: Any, tmp_path: Path, is_streamed: bool
) -> None:
    agent = caching(Counting(lambda call: spending("Fine.")), Cache(), Budget(max_model_calls=1))
    for _ in range(2):
        await (streamed(agent) if is_streamed else output(agent))
    recorder.force_flush()
    store = TraceStore(tmp_path / "traces.sqlite3")
    recording = Recording.from_trace(store, store.traces(limit=1)[0].trace_id)
    assert recording.root.model_calls[0].from_cache
    recording.save(tmp_path / "run.json")

    def unasked(_: Any) -> Any:
        raise AssertionError("a replay asks no model")

    # Whatever is stored now: nothing, or another answer; and no tenant, as a recording has none.
    budget = Budget(max_model_calls=1, max_tokens=1000, on_unknown_usage="raise")
    fresh = caching(Counting(unasked), Cache(), budget)
    replayed = await replay_async(Recording.load(tmp_path / "run.json"), fresh)
    assert replayed.output == "Fine."
    (call,) = recording.root.model_calls
    assert (call.is_streamed, call.from_cache) == (is_streamed, True)


@pytest.mark.parametrize("profile", ["openai", "anthropic", "deepseek"])
async def test_hits_of_structured_output_are_replayed_in_any_form(
    recorder: Any, tmp_path: Path, profile: str
) -> None:
    with OfflineServer([{"text": "right"}] * 4, profile=profile) as server:
        agent = caching(server.bundle(), Cache(), output_type=Out)
        for _ in range(2):
            await output(agent)
        made = len(server.requests)
        recorder.force_flush()
        store = TraceStore(tmp_path / "traces.sqlite3")
        for summary in store.traces(limit=2):
            replayed = await replay_async(Recording.from_trace(store, summary.trace_id), agent)
            assert str(replayed.output) == "text='right'"
        assert len(server.requests) == made


@pytest.mark.parametrize(
    ("make", "option"),
    [
        (lambda: Cache(5), "store"),  # type: ignore[arg-type]
        (lambda: Cache(MemoryStore), "store"),  # type: ignore[arg-type]
        (lambda: Cache(ttl=0), "ttl"),
        (lambda: Cache(ttl=float("nan")), "ttl"),
        (lambda: Cache(max_wait=-1), "max_wait"),
        (lambda: Cache(per=""), "per"),
        (lambda: Cache("missing/directory/cache.sqlite3"), "path"),
        (lambda: MemoryStore(0), "max_bytes"),
        (lambda: SQLiteStore("x.sqlite3", 0), "max_bytes"),
    ],
)
def test_invalid_options(make: Callable[[], Any], option: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"E75\] Invalid option {option}:"):
        make()


TEXTS = st.text(max_size=8)


@given(st.lists(st.tuples(TEXTS, TEXTS, st.sampled_from(["a", "b"])), min_size=2, max_size=6))
def test_two_requests_share_an_answer_exactly_if_they_are_equal(asked: list[tuple[str, str, str]]) -> None:
    model = Counting()
    cache = Cache()

    async def ask() -> list[str]:
        answers = []
        for instructions, text, tenant in asked:
            items = [{"role": "user", "content": text}]
            agent = caching(model, cache, instructions=f"I {instructions}", strict=False)
            answers.append(await output(agent, items, {"tenant": tenant}))
        return answers

    answers = asyncio.run(ask())
    for one, first in zip(asked, answers, strict=True):
        for other, second in zip(asked, answers, strict=True):
            assert (first == second) == (one == other)
