from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from agents import ModelRetrySettings, ModelSettings, RunConfig, retry_policies
from kantan_llm import AsyncClientBundle
from openai import RateLimitError

from kantan_agents import Agent, Middleware
from kantan_agents.errors import DeadlineExceededError, InvalidOptionError, ToolNotAllowedError
from kantan_agents.middleware import Budget, Retry, ToolErrors
from kantan_agents.testing import OfflineServer, Reply, ScriptedModel, assistant_message, function_call

NOW = {"retry-after-ms": "1"}


def quick(attempts: int = 3, **more: Any) -> Retry:
    return Retry(attempts, initial_delay=0.0, max_delay=0.0, **more)


def bundle(server: OfflineServer, client_retries: int = 0, api: str = "responses") -> AsyncClientBundle:
    made = server.bundle(api=api)
    client = made.client.with_options(max_retries=client_retries)
    return AsyncClientBundle(client, made.model, made.provider, made.base_url)


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_a_transient_error_is_retried(status: int, api: str) -> None:
    failing = Reply("later", status=status, headers=NOW)
    with OfflineServer([failing, failing, "Done."]) as server:
        agent = Agent("a", "x", model=bundle(server, api=api), middleware=[quick()])
        context = await agent.run_async("Go")
    assert context["result"].final_output == "Done."
    assert len(server.requests) == 3


async def test_a_streamed_call_is_retried() -> None:
    with OfflineServer([Reply("later", status=429, headers=NOW), "Done."]) as server:
        agent = Agent("a", "x", model=bundle(server), middleware=[quick()])
        async with agent.stream("Go") as stream:
            texts = [text async for text in stream.text_deltas()]
    assert "".join(texts) == "Done."
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_a_permanent_error_is_not_retried(status: int) -> None:
    with OfflineServer([Reply("no", status=status), "Done."]) as server:
        agent = Agent("a", "x", model=bundle(server), middleware=[quick()])
        with pytest.raises(Exception, match="no"):
            await agent.run_async("Go")
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", ["insufficient_quota", "billing_not_active", "exceeded_current_quota_error"])
@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_an_account_without_credit_is_not_asked_again(code: str, api: str) -> None:
    body = json.dumps({"error": {"message": "no credit", "type": code, "param": None, "code": code}})
    refused = {"status": 429, "body": body, "headers": {**NOW, "content-type": "application/json"}}
    with OfflineServer([refused, "Done."]) as server:
        agent = Agent("a", "x", model=bundle(server, api=api), middleware=[quick()])
        with pytest.raises(RateLimitError, match="no credit"):
            await agent.run_async("Go")
    assert len(server.requests) == 1


async def test_the_number_of_attempts_is_limited() -> None:
    with OfflineServer([Reply("later", status=500, headers=NOW)] * 9) as server:
        agent = Agent("a", "x", model=bundle(server), middleware=[quick(4)])
        with pytest.raises(Exception, match="later"):
            await agent.run_async("Go")
    assert len(server.requests) == 4


async def test_the_delay_is_the_one_the_server_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = record_sleeps(monkeypatch)
    with OfflineServer([Reply("later", status=429, headers={"retry-after": "7"}), "Done."]) as server:
        await Agent("a", "x", model=bundle(server), middleware=[quick()]).run_async("Go")
    assert slept == [7.0]


def record_sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []

    async def sleep(delay: float) -> None:
        slept.append(delay)

    monkeypatch.setattr("agents.run_internal.model_retry._sleep_for_retry", sleep)
    return slept


async def test_without_retry_after_the_delay_grows_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = record_sleeps(monkeypatch)
    with OfflineServer([Reply("later", status=500)] * 9) as server:
        retry = Retry(5, initial_delay=1, multiplier=3, max_delay=10)
        with pytest.raises(Exception, match="later"):
            await Agent("a", "x", model=bundle(server), middleware=[retry]).run_async("Go")
    bounds = [(0.87, 1.13), (2.6, 3.4), (7.8, 10), (8.7, 10)]
    assert len(slept) == len(bounds)
    assert all(low <= delay <= high for delay, (low, high) in zip(slept, bounds, strict=True))


async def test_a_call_is_not_retried_if_the_server_requests_too_long_a_delay() -> None:
    with OfflineServer([Reply("later", status=429, headers={"retry-after": "61"}), "Done."]) as server:
        agent = Agent("a", "x", model=bundle(server), middleware=[quick()])
        with pytest.raises(Exception, match="later"):
            await agent.run_async("Go")
    assert len(server.requests) == 1


async def test_settings_of_the_agent_take_precedence() -> None:
    settings = ModelSettings(retry=ModelRetrySettings(max_retries=0))
    with OfflineServer([Reply("later", status=500, headers=NOW), "Done."]) as server:
        agent = Agent("a", "x", model=bundle(server), model_settings=settings, middleware=[quick()])
        with pytest.raises(Exception, match="later"):
            await agent.run_async("Go")
    assert len(server.requests) == 1


async def test_settings_of_the_run_config_take_precedence_and_others_are_added() -> None:
    retry = ModelRetrySettings(max_retries=1)
    config = RunConfig(model_settings=ModelSettings(temperature=0.5, retry=retry))
    with OfflineServer([Reply("later", status=500, headers=NOW)] * 9) as server:
        agent = Agent("a", "x", model=bundle(server), middleware=[quick(9)])
        with pytest.raises(Exception, match="later"):
            await agent.run_async("Go", run_config=config)
    assert len(server.requests) == 2
    assert server.requests[0].body["temperature"] == 0.5
    assert config.model_settings is not None
    assert config.model_settings.retry is retry


async def test_a_custom_retry_policy_is_kept() -> None:
    settings = ModelSettings(retry=ModelRetrySettings(policy=retry_policies.http_status([404])))
    with OfflineServer([Reply("gone", status=404), Reply("later", status=500), "Done."]) as server:
        agent = Agent("a", "x", model=bundle(server), model_settings=settings, middleware=[quick()])
        with pytest.raises(Exception, match="later"):
            await agent.run_async("Go")
    assert len(server.requests) == 2


async def test_it_applies_to_handoff_targets() -> None:
    with OfflineServer([Reply("later", status=500, headers=NOW), "Done."]) as server:
        target = Agent("b", "x", model=bundle(server))
        first = ScriptedModel([[function_call("transfer_to_b", {}, call_id="0")]])
        agent = Agent("a", "x", model=first, handoffs=[target], middleware=[quick()])
        context = await agent.run_async("Go")
    assert context["result"].final_output == "Done."


async def test_an_error_of_this_library_is_not_retried() -> None:
    budget = Budget(max_model_calls=0)
    model = ScriptedModel()
    with pytest.raises(ValueError, match="E83"):
        await Agent("a", "x", model=model, middleware=[quick(), budget]).run_async("Go")
    assert model.calls == ()


async def test_a_timeout_error_of_this_library_is_not_retried() -> None:
    late = DeadlineExceededError(agent="a", seconds=1.0, model_calls=0, tool_calls=0, text="")
    model = ScriptedModel([late, [assistant_message("Done.")]])
    with pytest.raises(DeadlineExceededError):
        await Agent("a", "x", model=model, middleware=[quick()]).run_async("Go")


class Flaky:
    """A tool that fails a number of times before it works."""

    def __init__(self, failures: int, error: type[Exception] = ConnectionError) -> None:
        self.failures = failures
        self.error = error
        self.calls = 0

    def tool(self) -> Any:
        def fetch(url: str) -> str:
            """Fetch a page."""
            self.calls += 1
            if self.calls <= self.failures:
                raise self.error("lost")
            return f"page {url}"

        return fetch


async def tool_result(flaky: Flaky, *middleware: Any, arguments: Any = None) -> str:
    call = function_call("fetch", {"url": "u"} if arguments is None else arguments, call_id="1")
    model = ScriptedModel([[call], [assistant_message("Done.")]])
    await Agent("a", "x", model=model, tools=[flaky.tool()], middleware=middleware).run_async("Go")
    assert model.last_call is not None
    return str(model.last_call.input[-1]["output"])


async def test_a_named_tool_is_retried() -> None:
    flaky = Flaky(2)
    assert await tool_result(flaky, quick(tools={"fetch"})) == "page u"
    assert flaky.calls == 3


async def test_a_tool_that_is_not_named_is_run_once() -> None:
    flaky = Flaky(1)
    assert "An error occurred" in await tool_result(flaky, quick(tools={"other"}))
    assert flaky.calls == 1


async def test_the_last_failure_of_a_tool_reaches_the_outer_middleware() -> None:
    flaky = Flaky(9)
    assert await tool_result(flaky, ToolErrors(), quick(tools=["fetch"])) == (
        "The tool fetch failed. There is no result."
    )
    assert flaky.calls == 3


class Broken(Middleware):
    def __init__(self) -> None:
        self.calls = 0

    async def tool_call(self, call: Any, call_next: Any) -> Any:
        self.calls += 1
        raise ConnectionError("of the middleware")


async def test_an_error_of_another_middleware_is_not_retried() -> None:
    broken = Broken()
    with pytest.raises(ConnectionError):
        await tool_result(Flaky(0), quick(tools={"fetch"}), broken)
    assert broken.calls == 1


async def test_invalid_arguments_are_not_retried() -> None:
    flaky, delays = Flaky(0), Retry(3, tools={"fetch"}, initial_delay=3600, max_delay=3600)
    assert "An error occurred" in await tool_result(flaky, delays, arguments='{"no json')
    assert flaky.calls == 0


async def test_errors_of_this_library_in_a_tool_are_not_retried() -> None:
    class Denied(ToolNotAllowedError):
        def __init__(self, _message: str) -> None:
            super().__init__(tool_name="inner")

    flaky = Flaky(1, Denied)
    assert "An error occurred" in await tool_result(flaky, quick(tools={"fetch"}))
    assert flaky.calls == 1


async def test_the_delay_between_tool_attempts_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(delay: float) -> None:
        slept.append(delay)

    monkeypatch.setattr(anyio, "sleep", sleep)
    retry = Retry(4, tools={"fetch"}, initial_delay=1, multiplier=2, max_delay=3)
    assert await tool_result(Flaky(3), retry) == "page u"
    bounds = [(0.87, 1), (1.7, 2), (2.6, 3)]
    assert all(low <= delay <= high for delay, (low, high) in zip(slept, bounds, strict=True))


async def test_a_budget_outside_counts_a_repeated_tool_once() -> None:
    budget = Budget(max_tool_calls=9)
    await tool_result(Flaky(2), budget, quick(tools={"fetch"}))
    assert budget.used().per_tool == {"fetch": 1}


async def test_each_attempt_passes_through_the_rules_and_the_budget() -> None:
    flaky, budget = Flaky(2), Budget(max_tool_calls=9)
    await tool_result(flaky, quick(tools={"fetch"}), budget)
    assert budget.used().per_tool == {"fetch": 3}


@pytest.mark.parametrize(
    "options",
    [
        {"attempts": 0},
        {"attempts": True},
        {"attempts": 2.5},
        {"tools": "fetch"},
        {"tools": [1]},
        {"tools": 3},
        {"initial_delay": -1},
        {"max_delay": "5"},
        {"multiplier": float("nan")},
        {"longest_wait": None},
    ],
)
def test_an_invalid_option_is_an_error(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InvalidOptionError, match=name):
        Retry(**options)
