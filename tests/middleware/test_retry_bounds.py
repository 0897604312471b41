"""The retries of ``Retry`` are the only ones; they are bounded in number and time, and spread out."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import agents
import anyio
import attrs
import openai
import pytest
from agents import ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kantan_llm import AsyncClientBundle
from openai import AsyncOpenAI

from kantan_agents import Agent, AnthropicProvider, GeminiProvider, StatusJudge, task_tool
from kantan_agents.errors import (
    DeadlineExceededError,
    ModelNotConfiguredError,
    ProviderRequestError,
)
from kantan_agents.middleware import Deadline, Fallback, Retry
from kantan_agents.models import sent_once
from kantan_agents.testing import (
    OfflineServer,
    Reply,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)
from tests.agent.delegation.cast import definition, delegate
from tests.clocks import ENOUGH, let_pass
from tests.models.protocol.wire_server import Body, WireServer

NOW = {"retry-after-ms": "1"}
BUSY = Reply("later", status=503, headers=NOW)
quick = Retry(3, initial_delay=0.0, max_delay=0.0)


def bundle(server: OfflineServer, api: str = "responses", client_retries: int = 2) -> AsyncClientBundle:
    made = server.bundle(api=api)
    client = made.client.with_options(max_retries=client_retries)
    return AsyncClientBundle(client, made.model, made.provider, made.base_url)


async def run(agent: Agent, is_streamed: bool) -> None:
    if is_streamed:
        async with agent.stream("Go") as stream:
            async for _ in stream:
                pass
    else:
        await agent.run_async("Go")


async def run_in_vain(agent: Agent, is_streamed: bool = False) -> None:
    with pytest.raises(openai.InternalServerError):
        await run(agent, is_streamed)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between the attempts of model calls, which are not slept; the client must not wait at all."""
    asked: list[float] = []

    async def wait(delay: float) -> None:
        asked.append(delay)

    async def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the client retries")

    monkeypatch.setattr("agents.run_internal.model_retry._sleep_for_retry", wait)
    monkeypatch.setattr(openai.AsyncOpenAI, "_sleep_for_retry", refuse)
    return asked


# The property.


@attrs.frozen
class Asked:
    """A header with which a server asks for a wait, and the shortest and the longest time it can mean."""

    headers: dict[str, str]
    least: float = 0.0
    most: float = 0.0


def _date(seconds: int) -> Asked:
    headers = {"retry-after": formatdate(time.time() + seconds, usegmt=True)}
    return Asked(headers, max(seconds - 5.0, 0.0), max(seconds, 0.0))


_seconds = st.one_of(
    st.integers(0, 100).map(float), st.floats(0, 200, allow_nan=False), st.sampled_from([1e9, 1e300])
)
ASKED = st.one_of(
    st.just(Asked({})),
    _seconds.map(lambda s: Asked({"retry-after": repr(s)}, s, s)),
    _seconds.map(lambda s: Asked({"retry-after-ms": repr(s * 1000)}, s * 0.999999, s * 1.000001)),
    st.integers(-10, 300).map(_date),
    st.floats(max_value=-1e-9).map(lambda s: Asked({"retry-after": repr(s)})),
    st.floats(max_value=-1e-9).map(lambda s: Asked({"retry-after-ms": repr(s)})),
    st.sampled_from(["", "soon", "nan", "-inf", "-0", "0x10", "12 s", "Mon, 01 Jan 0001 00:00:00 -0000"]).map(
        lambda text: Asked({"retry-after": text})
    ),
    st.sampled_from(["inf", "1e999", "Fri, 31 Dec 9999 23:59:59 GMT"]).map(
        lambda text: Asked({"retry-after": text}, 1e9, float("inf"))
    ),
)
FAILURES = st.lists(
    st.tuples(st.sampled_from([400, 401, 408, 409, 422, 429, 500, 503, 529]), ASKED), max_size=6
)


@attrs.define
class Script:
    """What the server answers: the failures in order, then text."""

    failures: list[tuple[int, Asked]] = attrs.field(factory=list)
    requests: int = 0

    def __call__(self, _request: Any) -> Reply:
        self.requests += 1
        if self.requests > len(self.failures):
            return Reply("Done.")
        status, asked = self.failures[self.requests - 1]
        return Reply("later", status=status, headers=asked.headers)


@pytest.fixture(scope="module")
def script() -> Script:
    return Script()


@pytest.fixture(scope="module")
def server(script: Script) -> Iterator[OfflineServer]:
    with OfflineServer(script) as running:
        yield running


def is_final(failure: tuple[int, Asked], longest_wait: float) -> bool:
    status, asked = failure
    return status in (400, 401, 422) or asked.least > longest_wait


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    failures=FAILURES,
    attempts=st.integers(1, 5),
    longest_wait=st.sampled_from([0.0, 1.0, 60.0]),
    client_retries=st.integers(0, 3),
    api=st.sampled_from(["responses", "chat"]),
    is_streamed=st.booleans(),
)
@example(
    failures=[(429, Asked({"retry-after": "3"}, 3, 3))] * 3,
    attempts=3,
    longest_wait=1.0,
    client_retries=2,
    api="responses",
    is_streamed=False,
)
def test_the_server_gets_as_many_requests_as_attempts_and_no_wait_is_shorter_than_asked_or_beyond_the_bounds(
    failures: list[tuple[int, Asked]],
    attempts: int,
    longest_wait: float,
    client_retries: int,
    api: str,
    is_streamed: bool,
    script: Script,
    server: OfflineServer,
    waits: list[float],
) -> None:
    script.failures, script.requests = failures, 0
    waits.clear()
    retry = Retry(attempts, longest_wait=longest_wait)

    async def go() -> None:
        await run(Agent("a", "x", model=bundle(server, api, client_retries), middleware=[retry]), is_streamed)

    error: Exception | None = None
    try:
        anyio.run(go)
    except openai.APIStatusError as raised:
        error = raised

    # How many attempts a server can make necessary; a date close to the limit may be on either side of it.
    allowed = failures[: attempts - 1]
    until_final = next((i for i, one in enumerate(allowed) if is_final(one, longest_wait)), len(allowed))
    unclear = [i for i, (_, asked) in enumerate(allowed) if asked.least <= longest_wait < asked.most]
    assert script.requests in {until_final + 1, *(i + 1 for i in unclear if i < until_final)}
    assert (error is None) == (script.requests > len(failures))

    assert len(waits) == script.requests - 1
    for number, (wait, (_, asked)) in enumerate(zip(waits, failures, strict=False)):
        usual = min(0.5 * 2.0**number, 8.0)
        assert asked.least <= wait
        assert wait <= min(asked.most, longest_wait) + min(max(usual * 1.125, asked.most * 0.25), 8.0)


# Where the requests are made.

APIS = pytest.mark.parametrize("api", ["responses", "chat"])


@APIS
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_each_attempt_of_a_clients_model_is_one_request(
    api: str, is_streamed: bool, waits: list[float]
) -> None:
    with OfflineServer([BUSY] * 9) as server:
        agent = Agent("a", "x", model=bundle(server, api), middleware=[quick])
        await run_in_vain(agent, is_streamed)
    assert len(server.requests) == 3
    assert len(waits) == 2


async def test_each_attempt_of_a_named_model_is_one_request(
    monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    with OfflineServer([BUSY] * 9) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        await run_in_vain(Agent("a", "x", model="gpt-6.1-terra", middleware=[quick]))
    assert len(server.requests) == 3
    assert len(waits) == 2


@pytest.mark.parametrize("kind", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_each_attempt_of_a_model_of_the_sdk_is_one_request(
    kind: Any, is_streamed: bool, waits: list[float]
) -> None:
    with OfflineServer([BUSY] * 9) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key="offline")
        agent = Agent("a", "x", model=kind("m", client), middleware=[quick])
        await run_in_vain(agent, is_streamed)
    assert len(server.requests) == 3
    assert len(waits) == 2


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_models_that_ask_the_sdk_whether_to_retry_learn_that_they_must_not(is_streamed: bool) -> None:
    # The SDK's models for LiteLLM and any-llm ask with this function.
    from agents.models._retry_runtime import should_disable_provider_managed_retries

    asked: list[bool] = []

    class Asking(ScriptedModel):
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            asked.append(should_disable_provider_managed_retries())
            return await super().get_response(*args, **kwargs)

        async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            asked.append(should_disable_provider_managed_retries())
            async for event in super().stream_response(*args, **kwargs):
                yield event

    for middleware in ([], [quick]):
        agent = Agent("a", "x", model=Asking([[assistant_message("Done.")]]), middleware=middleware)
        if is_streamed:
            async with agent.stream("Go") as stream:
                async for _ in stream:
                    assert not should_disable_provider_managed_retries()
        else:
            await agent.run_async("Go")
    assert asked == [False, True]


async def test_each_attempt_of_a_structured_answer_is_one_request(waits: list[float]) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    with OfflineServer([BUSY, BUSY, {"n": 1}]) as server:
        agent = Agent("a", "x", model=bundle(server), output_type=schema, middleware=[quick])
        context = await agent.run_async("Go")
    assert context["result"].final_output == {"n": 1}
    assert len(server.requests) == 3
    assert len(waits) == 2


async def test_each_attempt_of_a_handoff_target_and_of_an_agent_used_as_a_tool_is_one_request(
    waits: list[float],
) -> None:
    with OfflineServer([BUSY] * 9) as server:
        target = Agent("b", "x", model=bundle(server))
        first = ScriptedModel([[function_call("transfer_to_b", {}, call_id="0")]])
        await run_in_vain(Agent("a", "x", model=first, handoffs=[target], middleware=[quick]))
        assert len(server.requests) == 3

    with OfflineServer([BUSY, BUSY, "From b."]) as server:
        inner = agents.Agent(
            "b", model=OpenAIResponsesModel("m", AsyncOpenAI(base_url=server.base_url, api_key="k"))
        )
        tool = inner.as_tool("ask_b", "Asks b.")
        calls = [function_call("ask_b", {"input": "?"}, call_id="0")]
        first = ScriptedModel([calls, [assistant_message("Done.")]])
        await Agent("a", "x", model=first, tools=[tool], middleware=[quick]).run_async("Go")
        assert len(server.requests) == 3


async def test_a_run_inside_a_tool_keeps_its_own_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(_self: Any, **_: Any) -> None:
        slept.append(0.0)

    monkeypatch.setattr(openai.AsyncOpenAI, "_sleep_for_retry", sleep)
    with OfflineServer([ScriptedToolCall("ask", {}), BUSY, BUSY, "Inner.", "Outer."]) as server:
        model = bundle(server)

        async def ask() -> str:
            """Ask another agent."""
            context = await Agent("inner", "x", model=model).run_async("Go")
            return str(context["result"].final_output)

        agent = Agent("outer", "x", model=model, tools=[ask], middleware=[quick])
        context = await agent.run_async("Go")
    assert context["result"].final_output == "Outer."
    assert len(slept) == 2


async def test_without_retry_the_client_retries_as_in_the_plain_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(_self: Any, **_: Any) -> None:
        return

    monkeypatch.setattr(openai.AsyncOpenAI, "_sleep_for_retry", sleep)
    with OfflineServer([BUSY] * 9) as server:
        await run_in_vain(Agent("a", "x", model=bundle(server)))
        assert len(server.requests) == 3
        await run_in_vain(Agent("a", "x", model=bundle(server), middleware=[Fallback(bundle(server))]))
        assert len(server.requests) == 3 + 6


@pytest.mark.parametrize("kind", [AnthropicProvider, GeminiProvider])
async def test_providers_over_http_do_not_retry_by_themselves(kind: Any, waits: list[float]) -> None:
    with WireServer([Body({"error": {"message": "busy"}}, status=503, headers=NOW)] * 9) as server:
        async with kind("m", api_key="sk-x", base_url=server.url) as provider:
            with pytest.raises(ProviderRequestError):
                await Agent("a", "x", model=provider).run_async("Go")
            assert len(server.requests) == 1
            with pytest.raises(ProviderRequestError):
                await Agent("a", "x", model=provider, middleware=[quick]).run_async("Go")
            assert len(server.requests) == 1 + 3
    assert len(waits) == 2


async def test_a_policy_of_the_user_decides_alone(waits: list[float]) -> None:
    policy = agents.retry_policies.http_status([503])
    own = ModelSettings(retry=agents.ModelRetrySettings(policy=policy))
    with OfflineServer([BUSY] * 9) as server:
        agent = Agent("a", "x", model=bundle(server), model_settings=own, middleware=[quick])
        await run_in_vain(agent)
    assert len(server.requests) == 3
    assert own.retry is not None
    assert own.retry.policy is policy


async def test_the_delays_of_the_user_apply(waits: list[float]) -> None:
    backoff = agents.ModelRetryBackoffSettings(initial_delay=100.0, max_delay=100.0)
    own = ModelSettings(retry=agents.ModelRetrySettings(backoff=backoff))
    with OfflineServer([Reply("later", status=500)] * 9) as server:
        agent = Agent("a", "x", model=bundle(server), model_settings=own, middleware=[quick])
        await run_in_vain(agent)
    assert [87 < wait <= 100 for wait in waits] == [True, True]


async def test_an_sdk_without_the_switch_is_logged_and_the_librarys_own_clients_still_do_not_retry(
    monkeypatch: pytest.MonkeyPatch, waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    def missing(_name: str) -> Any:
        raise ModuleNotFoundError("agents.models._retry_runtime")

    monkeypatch.setattr(sent_once, "import_module", missing)
    sent_once._sdk_switch.cache_clear()
    try:
        with OfflineServer([BUSY] * 9) as server:
            agent = Agent("a", "x", model=bundle(server), middleware=[quick])
            await run_in_vain(agent)
    finally:
        sent_once._sdk_switch.cache_clear()
    assert len(server.requests) == 3
    assert len([one for one in caplog.records if "keep their own retries" in one.message]) == 1


# The waits.


async def test_runs_that_fail_together_do_not_come_back_together(waits: list[float]) -> None:
    with OfflineServer([Reply("later", status=429, headers={"retry-after": "60"})] * 200) as server:
        agent = Agent("a", "x", model=bundle(server), middleware=[Retry(2)])

        async def fail() -> None:
            with pytest.raises(openai.RateLimitError):
                await agent.run_async("Go")

        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(fail)
    assert len(waits) == 50
    assert min(waits) >= 60
    assert max(waits) <= 68
    assert len({round(wait, 1) for wait in waits}) > 20


async def test_a_multiplier_without_bounds_does_not_overflow(waits: list[float]) -> None:
    with OfflineServer([Reply("later", status=500)] * 9) as server:
        retry = Retry(4, initial_delay=1, multiplier=1e300, max_delay=2)
        await run_in_vain(Agent("a", "x", model=bundle(server), middleware=[retry]))
    assert [wait <= 2 for wait in waits] == [True] * 3


def logged(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [one for one in caplog.records if one.name == "kantan_agents.middleware"]


async def test_a_wait_that_would_end_after_the_deadline_is_not_begun(
    waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="kantan_agents.middleware")
    with OfflineServer([Reply("later", status=429, headers={"retry-after": "50"})] * 9) as server:
        for middleware in ([Deadline(8), Retry()], [Retry(), Deadline(8)]):
            with pytest.raises(openai.RateLimitError):
                await Agent("a", "x", model=bundle(server), middleware=middleware).run_async("Go")
    assert len(server.requests) == 2
    assert waits == []
    assert [one.message for one in logged(caplog)] == ["model call not retried: deadline"] * 2


async def test_a_wait_for_a_tool_that_would_end_after_the_deadline_is_not_begun(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="kantan_agents.middleware")
    calls: list[str] = []

    def fetch() -> str:
        """Fetch a page."""
        calls.append("fetch")
        raise ConnectionError("lost")

    retry = Retry(3, tools={"fetch"}, initial_delay=3600, max_delay=3600)
    model = ScriptedModel([[function_call("fetch", {}, call_id="1")], [assistant_message("Done.")]])
    agent = Agent("a", "x", model=model, tools=[fetch], middleware=[Deadline(ENOUGH), retry])
    context = await agent.run_async("Go")
    assert context["result"].final_output == "Done."
    assert calls == ["fetch"]
    assert [one.message for one in logged(caplog)] == ["tool not retried: deadline"]


@pytest.mark.parametrize("middleware", [[], [Retry()]], ids=["the client waits", "Retry waits"])
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_the_deadline_ends_a_run_that_waits_for_its_next_attempt(
    middleware: list[Any], is_streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(*_: Any, **__: Any) -> None:
        let_pass()
        await anyio.sleep(3600)

    monkeypatch.setattr("agents.run_internal.model_retry._sleep_for_retry", wait)
    monkeypatch.setattr(openai.AsyncOpenAI, "_sleep_for_retry", wait)
    with OfflineServer([BUSY] * 9) as server:
        agent = Agent("a", "x", model=bundle(server), middleware=[Deadline(ENOUGH), *middleware])
        with pytest.raises(DeadlineExceededError):
            await run(agent, is_streamed)
    assert len(server.requests) == 1


async def test_each_retry_is_logged(waits: list[float], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="kantan_agents.middleware")
    with OfflineServer([BUSY, BUSY, "Done."]) as server:
        await Agent("a", "x", model=bundle(server), middleware=[quick]).run_async("Go")
    assert [(one.message, one.attempt) for one in logged(caplog)] == [
        ("model call failed, trying again", 1),
        ("model call failed, trying again", 2),
    ]


@pytest.mark.parametrize("options", [{}, {"middleware": []}], ids=["with its middleware", "without"])
async def test_each_attempt_of_a_subagent_is_one_request(options: dict[str, Any], waits: list[float]) -> None:
    with OfflineServer([BUSY] * 9) as server:
        first = ScriptedModel([delegate("helper"), [assistant_message("Done.")]])
        tool = task_tool([definition("helper")], model=bundle(server), **options)
        await Agent("a", "x", model=first, tools=[tool], middleware=[quick]).run_async("Go")
    assert len(server.requests) == 3


async def test_each_attempt_of_a_judge_is_one_request(waits: list[float]) -> None:
    with OfflineServer([BUSY, BUSY, {"step": 1, "reason": "so"}] + [BUSY] * 9) as server:
        judge = StatusJudge(["done", "open"], model=bundle(server), middleware=[quick])
        await judge.judge("All is done.")
    assert len(server.requests) == 3


async def test_the_clients_of_this_library_are_not_copied_for_a_request(
    monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    with OfflineServer([BUSY, BUSY, "Done."]) as server:
        agent = Agent("a", "x", model=bundle(server), middleware=[quick])

        def copied(*_: Any, **__: Any) -> Any:
            raise AssertionError("the client was copied")

        monkeypatch.setattr(AsyncOpenAI, "with_options", copied)
        await agent.run_async("Go")
    assert len(server.requests) == 3


async def test_a_model_without_a_key_leaves_no_call_that_was_never_awaited() -> None:
    model: Any = Agent("a", "x", model="openrouter/m").sdk_agent.model
    call = model.get_response()
    with pytest.raises(ModelNotConfiguredError):
        await sent_once.answer_sent_once(model, call)
    assert inspect.getcoroutinestate(call) == inspect.CORO_CLOSED
