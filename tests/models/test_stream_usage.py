"""Streamed chat completions report their usage, because every request asks for it."""

from __future__ import annotations

from typing import Any

import agents
import openai
import pytest
from agents import (
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIProvider,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
)
from kantan_llm import KantanAsyncLLM

from kantan_agents import Agent, Middleware
from kantan_agents.middleware import Fallback
from kantan_agents.models import origin as origin_module
from kantan_agents.models.origin import ModelOrigin, Origins
from kantan_agents.testing import OfflineServer, Profile, Reply

ASKED = {"include_usage": True}


def chat_model(server: OfflineServer) -> OpenAIChatCompletionsModel:
    return OpenAIChatCompletionsModel("given", server.bundle(api="chat").client)


class Routed(agents.Model):
    """A user's own model, which passes each call on to another one."""

    def __init__(self, inner: agents.Model) -> None:
        self.inner = inner

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        return await self.inner.get_response(*args, **kwargs)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.stream_response(*args, **kwargs)


def a_name(server: OfflineServer, environment: pytest.MonkeyPatch) -> dict[str, Any]:
    for name, value in server.environment().items():
        environment.setenv(name, value)
    return {"model": "compat/llama"}


def a_bundle(server: OfflineServer, _: pytest.MonkeyPatch) -> dict[str, Any]:
    return {"model": server.bundle(api="chat")}


def a_kantan_llm(server: OfflineServer, _: pytest.MonkeyPatch) -> dict[str, Any]:
    bundle = server.bundle(api="chat")
    return {"model": KantanAsyncLLM(bundle.provider, bundle.model, bundle.client)}


def an_sdk_model(server: OfflineServer, _: pytest.MonkeyPatch) -> dict[str, Any]:
    return {"model": chat_model(server)}


def a_model_of_the_user(server: OfflineServer, _: pytest.MonkeyPatch) -> dict[str, Any]:
    return {"model": Routed(chat_model(server))}


def a_provider(server: OfflineServer, _: pytest.MonkeyPatch) -> dict[str, Any]:
    client = server.bundle().client
    factory = lambda: OpenAIProvider(openai_client=client, use_responses=False)
    return {"model": "llama", "model_provider_factory": factory}


def a_fallback(server: OfflineServer, _: pytest.MonkeyPatch) -> dict[str, Any]:
    unreachable = OpenAIChatCompletionsModel(
        "x", openai.AsyncOpenAI(api_key="x", base_url="http://127.0.0.1:9/v1", max_retries=0)
    )
    return {"model": unreachable, "middleware": [Fallback(server.bundle(api="chat"))]}


def a_model_of_a_middleware(server: OfflineServer, _: pytest.MonkeyPatch) -> dict[str, Any]:
    class Swap(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            call.model = chat_model(server)
            return await call_next(call)

    return {"model": "gpt-4o", "middleware": [Swap()]}


WAYS = (
    a_name,
    a_bundle,
    a_kantan_llm,
    an_sdk_model,
    a_model_of_the_user,
    a_provider,
    a_fallback,
    a_model_of_a_middleware,
)


async def streamed(agent: Agent[Any], **options: Any) -> list[Any]:
    async with agent.stream("Hi", **options) as run:
        return [event async for event in run]


@pytest.mark.parametrize("way", WAYS)
async def test_every_way_to_give_a_model_asks_for_the_usage_of_a_stream(
    way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OfflineServer(["Hello."]) as server:
        if way is a_model_of_a_middleware:
            monkeypatch.setenv("OPENAI_API_KEY", "offline")
        events = await streamed(Agent("a", "b", **way(server, monkeypatch)))
    assert [request.body["stream_options"] for request in server.requests] == [ASKED]
    assert events[-1].usage["total_tokens"] == 15


async def test_a_hand_off_target_of_the_sdk_is_asked() -> None:
    with OfflineServer([{"tool": "transfer_to_target"}, "Hello."]) as server:
        target = agents.Agent(name="target", model=chat_model(server))
        agent = Agent("a", "b", model=server.bundle(api="responses"), handoffs=[target])
        events = await streamed(agent)
    assert [request.body.get("stream_options") for request in server.requests] == [None, ASKED]
    assert events[-1].usage["total_tokens"] == 30


async def test_a_model_of_the_run_config_is_asked() -> None:
    with OfflineServer(["Hello."] * 2) as server:
        agent = Agent("a", "b", model=server.bundle(api="responses"))
        await streamed(agent, run_config=RunConfig(model=chat_model(server)))
        provider = OpenAIProvider(openai_client=server.bundle().client, use_responses=False)
        await streamed(agent, run_config=RunConfig(model="x", model_provider=provider))
    assert [request.body["stream_options"] for request in server.requests] == [ASKED, ASKED]


@pytest.mark.parametrize("way", [a_name, a_bundle])
async def test_a_model_made_from_a_name_or_a_client_is_asked_in_runs_of_the_sdk(
    way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OfflineServer(["Hello."]) as server:
        agent = Agent("a", "b", **way(server, monkeypatch))
        result = Runner.run_streamed(agent.sdk_agent, "Hi")
        async for _ in result.stream_events():
            pass
    assert result.context_wrapper.usage.total_tokens == 15


@pytest.mark.parametrize("way", [a_name, a_bundle, an_sdk_model])
@pytest.mark.parametrize(
    "settings",
    [
        ModelSettings(include_usage=False),
        ModelSettings(extra_args={"stream_options": {"include_usage": False}}),
        ModelSettings(extra_body={"stream_options": {"include_usage": False}}),
    ],
    ids=["include_usage", "extra_args", "extra_body"],
)
async def test_settings_that_decide_about_the_usage_are_respected(
    way: Any, settings: ModelSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OfflineServer(["Hello."]) as server:
        agent = Agent("a", "b", **way(server, monkeypatch), model_settings=settings)
        await streamed(agent)
    assert [request.body["stream_options"] for request in server.requests] == [{"include_usage": False}]


async def test_the_run_config_can_switch_it_off() -> None:
    with OfflineServer(["Hello."]) as server:
        agent = Agent("a", "b", model=server.bundle(api="chat"))
        await streamed(agent, run_config=RunConfig(model_settings=ModelSettings(include_usage=False)))
    assert server.requests[0].body["stream_options"] == {"include_usage": False}


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_only_streamed_chat_completions_differ_from_requests_of_the_sdk(
    api: str, is_streamed: bool
) -> None:
    with OfflineServer(["Hello."] * 2) as server:
        bundle = server.bundle(api=api)
        kind: Any = OpenAIChatCompletionsModel if api == "chat" else OpenAIResponsesModel
        settings = ModelSettings(temperature=0.5, max_tokens=9)
        plain = agents.Agent(
            name="a", instructions="b", model=kind(bundle.model, bundle.client), model_settings=settings
        )
        own = Agent("a", "b", model=bundle, model_settings=settings)
        if is_streamed:
            async for _ in Runner.run_streamed(plain, "Hi").stream_events():
                pass
            await streamed(own)
        else:
            await Runner.run(plain, "Hi")
            await own.run_async("Hi")
    first, second = (request.body for request in server.requests)
    added = {"stream_options": ASKED} if is_streamed and api == "chat" else {}
    assert second == first | added


def no_question(status: int, message: str) -> Profile:
    def refuses(body: Any) -> Reply | None:
        return Reply(message, status=status) if "stream_options" in body else None

    return Profile("old", refuses=refuses, usage="never")


@pytest.mark.parametrize("way", [a_name, a_bundle, an_sdk_model])
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Unrecognized request argument supplied: stream_options"),
        (422, "body.stream_options: Extra inputs are not permitted"),
    ],
)
async def test_a_server_that_rejects_the_question_is_asked_once(
    way: Any, status: int, message: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with OfflineServer(["One.", "Two."], profile=no_question(status, message)) as server:
        agent = Agent("a", "b", **way(server, monkeypatch))
        first, second = await streamed(agent), await streamed(agent)
    assert [events[-1].output for events in (first, second)] == ["One.", "Two."]
    assert [request.body.get("stream_options") for request in server.requests] == [ASKED, None, None]
    warnings = [record for record in caplog.records if "stream_options" in record.getMessage()]
    assert len(warnings) == 1


async def test_any_other_error_is_not_taken_for_a_rejected_question() -> None:
    with OfflineServer([Reply("temperature is too high", status=400)]) as server:
        agent = Agent("a", "b", model=server.bundle(api="chat"))
        with pytest.raises(openai.BadRequestError, match="temperature"):
            await streamed(agent)
        assert len(server.requests) == 1


async def test_an_error_after_a_rejected_question_is_the_error_of_the_run() -> None:
    refusals = no_question(400, "stream_options is unknown")
    with OfflineServer([Reply("no such model", status=404), "Hello."], profile=refusals) as server:
        agent = Agent("a", "b", model=server.bundle(api="chat"))
        with pytest.raises(openai.NotFoundError, match="no such model") as raised:
            await streamed(agent)
        assert not isinstance(raised.value.__context__, openai.BadRequestError)
        await streamed(agent)
    # The second request has failed as well, so the question may not have been the cause: it is asked again.
    asked = [request.body.get("stream_options") for request in server.requests]
    assert asked == [ASKED, None, ASKED, None]


async def test_the_oldest_refusals_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin_module, "_MOST_ORIGINS", 2)
    refusals = Origins()
    origins = [ModelOrigin("http://127.0.0.1", name) for name in ("one", "two", "three")]
    for origin in origins:
        refusals.add(origin)
    assert [origin in refusals for origin in origins] == [False, True, True]
