from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import agents
import kantan_llm
import pytest
from agents import ModelSettings, OpenAIProvider
from agents.models import get_default_model_settings

from kantan_agents import Agent
from kantan_agents.errors import ModelNotFoundError
from kantan_agents.testing import OfflineServer, ScriptedModel, assistant_message


def model_and_path(request: Any) -> Any:
    return f"{request.model} at {request.path}"


@contextmanager
def serving(monkeypatch: Any, reply: Any) -> Iterator[OfflineServer]:
    with OfflineServer(reply) as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def server(monkeypatch: Any) -> Any:
    with serving(monkeypatch, model_and_path) as running:
        yield running


def final_output_of(agent: Any) -> Any:
    return agent.run("hi")["result"].final_output


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-4.1-mini", "gpt-4.1-mini at /v1/responses"),
        ("openai/gpt-4.1", "gpt-4.1 at /v1/responses"),
        ("gemini-2.5-pro", "gemini-2.5-pro at /v1/chat/completions"),
        ("claude-sonnet-4-5", "claude-sonnet-4-5 at /v1/chat/completions"),
        ("ollama/llama3.2", "llama3.2 at /v1/chat/completions"),
        ("lmstudio/qwen3", "qwen3 at /v1/chat/completions"),
    ],
)
def test_a_name_is_sent_to_its_provider_over_that_providers_api(
    server: Any, name: Any, expected: Any
) -> None:
    assert final_output_of(Agent("a", "b", model=name)) == expected


def test_each_provider_gets_its_own_address(monkeypatch: Any) -> None:
    with OfflineServer(["from google"]) as google, OfflineServer(["from ollama"]) as ollama:
        monkeypatch.setenv("GOOGLE_BASE_URL", google.base_url)
        monkeypatch.setenv("GOOGLE_API_KEY", "google-key")
        monkeypatch.setenv("OLLAMA_BASE_URL", ollama.base_url)
        assert final_output_of(Agent("a", "b", model="gemini-2.5-pro")) == "from google"
        assert final_output_of(Agent("a", "b", model="ollama/llama3.2")) == "from ollama"
        assert google.requests[0].headers["authorization"] == "Bearer google-key"


@pytest.mark.parametrize("name", ["nonsense", "gpt-oss", "", "  "])
def test_creating_an_agent_with_an_unknown_model_name_raises_e19(name: Any) -> None:
    with pytest.raises(ModelNotFoundError) as caught:
        Agent("a", "b", model=name)
    assert str(caught.value) == f"[kantan-agents][E19] Model not found: {name}"
    assert caught.value.__cause__ is not None


def test_one_agent_works_in_one_event_loop_after_another_and_in_several_at_once(server: Any) -> None:
    agent = Agent("a", "b", model="gpt-4.1-mini")
    for _ in range(3):
        assert "gpt-4.1-mini" in asyncio.run(agent.run_async("hi"))["result"].final_output
    assert "gpt-4.1-mini" in final_output_of(agent)

    async def both() -> Any:
        # The sync run uses the background loop while this loop holds its own connection.
        first = await agent.run_async("hi")
        second = await asyncio.to_thread(agent.run, "hi")
        third = await agent.run_async("hi")
        return [c["result"].final_output for c in (first, second, third)]

    assert len(asyncio.run(both())) == 3
    assert len(server.requests) == 7


def test_clients_of_closed_loops_are_released(server: Any) -> None:
    agent = Agent("a", "b", model="gpt-4.1-mini")
    for _ in range(5):
        asyncio.run(agent.run_async("hi"))
    assert len(agent.sdk_agent.model.clients._models) <= 1


def test_agents_created_in_many_threads_share_one_client(server: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: Agent("a", "b", model="gpt-4.1-nano"), range(16)))
    assert len({id(agent.sdk_agent.model.clients) for agent in made}) == 1


def test_the_environment_is_read_when_an_agent_is_created(monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    for text in ("one", "two"):
        with OfflineServer([text]) as running:
            monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
            assert final_output_of(Agent("a", "b", model="gpt-4.1")) == text


def test_agents_with_the_same_model_share_one_client(server: Any) -> None:
    first, second = (Agent("a", "b", model="gpt-4.1").sdk_agent.model for _ in range(2))
    assert first.clients is second.clients


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_a_bundle_is_used_unchanged(server: Any, api: Any) -> None:
    agent = Agent("a", "b", model=server.bundle("mine", api=api))
    path = "/v1/responses" if api == "responses" else "/v1/chat/completions"
    assert final_output_of(agent) == f"mine at {path}"


def test_a_kantan_async_llm_is_used_unchanged(server: Any) -> None:
    llm = kantan_llm.get_async_llm("gemini-2.5-pro", tracer=None)
    assert final_output_of(Agent("a", "b", model=llm)) == "gemini-2.5-pro at /v1/chat/completions"


def test_an_sdk_model_is_used_unchanged() -> None:
    model = ScriptedModel([[assistant_message("x")]])
    assert final_output_of(Agent("a", "b", model=model)) == "x"
    assert Agent("a", "b", model=model).sdk_agent.model is model


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_name_is_sent_to_its_provider_when_the_sdk_runs_the_agent(
    server: Any, streamed: bool
) -> None:
    agent = Agent("ours", "b", model="gemini-2.5-pro")
    first = agents.Agent(name="first", model=agent.sdk_agent.model, handoffs=[agent.sdk_agent])
    for start in (agent.sdk_agent, first):
        if streamed:
            result: Any = agents.Runner.run_streamed(start, "hi", context={})
            async for _ in result.stream_events():
                pass
        else:
            result = await agents.Runner.run(start, "hi", context={})
        assert result.final_output == "gemini-2.5-pro at /v1/chat/completions"


def test_a_named_model_shows_its_name_and_delegates_attributes(server: Any) -> None:
    agent = Agent("a", "b", model="gpt-4.1-mini")
    model = agent.sdk_agent.model
    assert repr(agent) == "Agent('a', model=NamedModel('gpt-4.1-mini'))"
    assert not hasattr(model, "_client")  # which client it is depends on the running loop

    async def inside() -> Any:
        await model.close()
        return model._client, model.get_retry_advice

    client, _ = asyncio.run(inside())
    assert str(client.base_url).startswith(server.base_url)


def test_none_is_the_default_model_of_the_sdk(server: Any) -> None:
    from agents.models import get_default_model

    assert final_output_of(Agent("a", "b")) == f"{get_default_model()} at /v1/responses"


def test_a_provider_factory_creates_a_provider_for_each_run(server: Any) -> None:
    made = []

    def factory() -> Any:
        made.append(OpenAIProvider(base_url=server.base_url, api_key="x", use_responses=False))
        return made[-1]

    agent = Agent("a", "b", model="any name at all", model_provider_factory=factory)
    assert [final_output_of(agent), final_output_of(agent)] == ["any name at all at /v1/chat/completions"] * 2
    assert len(made) == 2


def test_each_agent_of_a_run_calls_its_own_provider(monkeypatch: Any) -> None:
    from kantan_agents.testing import ScriptedToolCall

    def reply(request: Any) -> Any:
        if request.model in ("a", "b"):
            return ScriptedToolCall("transfer_to_" + {"a": "b", "b": "c"}[request.model])
        return model_and_path(request)

    asked = []

    def factory_of(name: str, server: OfflineServer) -> Any:
        def factory() -> OpenAIProvider:
            asked.append(name)
            return OpenAIProvider(base_url=server.base_url, api_key=name, use_responses=name == "A")

        return factory

    with serving(monkeypatch, reply) as server:
        c = Agent("c", "x", model="gemini-2.5-pro")
        b = Agent("b", "x", model="b", model_provider_factory=factory_of("B", server), handoffs=[c])
        a = Agent("a", "x", model="a", model_provider_factory=factory_of("A", server), handoffs=[b])
        assert final_output_of(a) == "gemini-2.5-pro at /v1/chat/completions"
    assert asked == ["A", "B"]
    keys = [request.headers["authorization"] for request in server.requests]
    assert keys == ["Bearer A", "Bearer B", "Bearer offline"]


def test_a_model_name_in_the_run_config_is_sent_to_its_provider(server: Any) -> None:
    agent = Agent("a", "b", model="gpt-4.1")
    context = agent.run("hi", run_config={"model": "gemini-2.5-pro"})
    assert context["result"].final_output == "gemini-2.5-pro at /v1/chat/completions"


def test_a_provider_in_the_run_config_takes_precedence(server: Any) -> None:
    provider = OpenAIProvider(base_url=server.base_url, api_key="x", use_responses=False)
    agent = Agent("a", "b", model="gpt-4.1")
    config = agents.RunConfig(model_provider=provider)
    assert agent.run("hi", run_config=config)["result"].final_output == "gpt-4.1 at /v1/chat/completions"
    assert config.model_provider is provider


def test_a_run_config_may_be_a_dict_and_is_never_changed(server: Any) -> None:
    agent = Agent("a", "b", model="gpt-4.1")
    config = agents.RunConfig(workflow_name="mine")
    before = dict(vars(config))
    agent.run("hi", run_config=config)
    agent.run("hi", run_config={"workflow_name": "mine"})
    assert vars(config) == before


def test_gpt_5_keeps_the_sdks_default_settings(server: Any) -> None:
    expected = get_default_model_settings("gpt-5.4")
    assert expected != ModelSettings()
    assert Agent("a", "b", model="gpt-5.4").sdk_agent.model_settings == expected
    assert Agent("a", "b", model=server.bundle("gpt-5.4")).sdk_agent.model_settings == expected
    Agent("a", "b", model="gpt-5.4").run("hi")
    Agent("a", "b", model=server.bundle("gpt-5.4")).run("hi")
    sent = [{k: r.body.get(k) for k in ("reasoning", "text")} for r in server.requests]
    assert sent[0] == sent[1]
    assert sent[0]["text"] == {"verbosity": expected.verbosity}


def test_the_sdk_resolves_the_model_of_an_sdk_agent_as_hand_off_target(monkeypatch: Any) -> None:
    from kantan_agents.testing import ScriptedToolCall

    def reply(request: Any) -> Any:
        is_first = request.model == "gemini-2.5-pro"
        return ScriptedToolCall("transfer_to_b") if is_first else model_and_path(request)

    target = agents.Agent(name="b", instructions="x", model="gpt-4.1-nano")
    with serving(monkeypatch, reply):
        agent = Agent("a", "b", model="gemini-2.5-pro", handoffs=[target])
        assert final_output_of(agent) == "gpt-4.1-nano at /v1/responses"


def test_no_module_contains_the_url_of_openai() -> None:
    import kantan_agents

    root = Path(kantan_agents.__file__).parent
    assert not [p for p in root.rglob("*.py") if "api.openai.com" in p.read_text()]
