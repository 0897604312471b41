"""Names of OpenAI's models, and the defaults that ``agents.set_default_openai_...`` sets for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import agents
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI

from kantan_agents import Agent
from kantan_agents.errors import ModelNotConfiguredError, ModelNotFoundError
from kantan_agents.models.openai_defaults import at_openai
from kantan_agents.models.resolve import embedding_clients
from kantan_agents.testing import OfflineServer

NAMES = [
    "o1",
    "o3-mini",
    "O3",
    "o4-mini-deep-research",
    "chatgpt-4o-latest",
    "codex-mini-latest",
    "computer-use-preview",
    "gpt-4.1",
    "openai/o3",
    "ft:gpt-4o-mini-2024-07-18:acme::abc",
]


def described(request: Any) -> str:
    return f"{request.model} {request.path.removeprefix('/v1/')} {request.headers['authorization']}"


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[OfflineServer]:
    with OfflineServer(described) as running:
        monkeypatch.setenv("OPENAI_API_KEY", "env")
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        yield running


@pytest.fixture
def other() -> Iterator[OfflineServer]:
    with OfflineServer(lambda request: f"other: {described(request)}") as running:
        yield running


def client_of(server: OfflineServer) -> AsyncOpenAI:
    return AsyncOpenAI(api_key="mine", base_url=server.base_url)


def answer(agent: Agent[Any]) -> Any:
    return agent.run("hi")["result"].final_output


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("elsewhere", [True, False])
def test_the_names_of_openais_models_go_to_openai_whatever_else_is_configured(
    openai: OfflineServer, monkeypatch: pytest.MonkeyPatch, name: str, elsewhere: bool
) -> None:
    if elsewhere:
        monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:9/v1")
        monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    assert answer(Agent("a", "b", model=name)) == f"{name.removeprefix('openai/')} responses Bearer env"


@pytest.mark.parametrize(
    "name", ["o", "ollama/o3", "opus", "o3x", "gpt-oss-20b", "openrouter/openai/o3", "octopus-7b", "codexa"]
)
def test_other_names_do_not(name: str) -> None:
    assert at_openai(name) is None


@given(st.text())
def test_any_text_is_a_name_at_openai_or_not(name: str) -> None:
    assert at_openai(name) in (None, name.strip(), name.strip().partition("/")[2])


def test_the_default_client_counts_whenever_it_is_set(openai: OfflineServer, other: OfflineServer) -> None:
    early = Agent("a", "b", model="gpt-4.1")
    assert answer(early) == "gpt-4.1 responses Bearer env"
    agents.set_default_openai_client(client_of(other))
    for agent in (early, Agent("a", "b", model="gpt-4.1")):
        assert answer(agent) == "other: gpt-4.1 responses Bearer mine"
    assert asyncio.run(early.run_async("hi"))["result"].final_output.startswith("other: ")


def test_the_default_client_needs_no_key_in_the_environment(other: OfflineServer) -> None:
    early = Agent("a", "b", model="o3-mini")
    with pytest.raises(ModelNotConfiguredError):
        early.check_model()
    agents.set_default_openai_client(client_of(other))
    for agent in (early, Agent("a", "b", model="o3-mini")):
        agent.check_model()
        assert answer(agent) == "other: o3-mini responses Bearer mine"


def test_the_default_client_is_used_when_the_sdk_runs_the_agent(other: OfflineServer) -> None:
    agents.set_default_openai_client(client_of(other))
    result = asyncio.run(agents.Runner.run(Agent("a", "b", model="gpt-4.1").sdk_agent, "hi"))
    assert result.final_output == "other: gpt-4.1 responses Bearer mine"


def test_the_default_client_counts_for_a_name_of_no_known_provider(other: OfflineServer) -> None:
    with pytest.raises(ModelNotFoundError):
        Agent("a", "b", model="deepseek-chat")
    agents.set_default_openai_client(client_of(other))
    agents.set_default_openai_api("chat_completions")
    assert answer(Agent("a", "b", model="deepseek-chat")) == (
        "other: deepseek-chat chat/completions Bearer mine"
    )


@pytest.mark.parametrize("name", ["gemini-2.5-pro", "ollama/llama3.2", "qwen3"])
def test_other_providers_do_not_use_the_default_client(
    openai: OfflineServer, other: OfflineServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable, value in openai.environment().items():
        monkeypatch.setenv(variable, value)
    agents.set_default_openai_client(client_of(other))
    assert not answer(Agent("a", "b", model=name)).startswith("other: ")


def test_a_provider_without_its_variable_is_e47_despite_the_default_client(other: OfflineServer) -> None:
    agents.set_default_openai_client(client_of(other))
    with pytest.raises(ModelNotConfiguredError, match="GOOGLE_API_KEY"):
        Agent("a", "b", model="gemini-2.5-pro").check_model()


def test_the_default_key_goes_before_the_environment(openai: OfflineServer) -> None:
    early = Agent("a", "b", model="gpt-4.1")
    agents.set_default_openai_key("default", use_for_tracing=False)
    for agent in (early, Agent("a", "b", model="gpt-4.1")):
        assert answer(agent) == "gpt-4.1 responses Bearer default"


def test_the_default_api_is_used(openai: OfflineServer) -> None:
    early = Agent("a", "b", model="gpt-4.1")
    assert answer(early) == "gpt-4.1 responses Bearer env"
    agents.set_default_openai_api("chat_completions")
    for agent in (early, Agent("a", "b", model="gpt-4.1")):
        assert answer(agent) == "gpt-4.1 chat/completions Bearer env"


@pytest.mark.parametrize("has_key", [True, False])
async def test_embeddings_by_name_use_the_default_client(
    other: OfflineServer, monkeypatch: pytest.MonkeyPatch, has_key: bool
) -> None:
    if has_key:
        monkeypatch.setenv("OPENAI_API_KEY", "env")
    client = client_of(other)
    agents.set_default_openai_client(client)
    clients, model = await embedding_clients("text-embedding-3-small")
    assert (clients.client(), model) == (client, "text-embedding-3-small")


@pytest.mark.parametrize("name", ["litellm/openai/gpt-4o", "any-llm/openai/gpt-4o"])
def test_names_of_the_sdks_extensions_go_to_them_whatever_the_environment_holds(
    openai: OfflineServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    with pytest.raises(ImportError, match="openai-agents"):  # in this environment
        answer(Agent("a", "b", model=name))
    assert openai.requests == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gtp-4o", "The nearest name is gpt-4o."),
        ("cluade-sonnet-4-5", "The nearest name is claude-sonnet-4-5."),
        ("olama/llama3.2", "The nearest name is ollama/llama3.2."),
        ("deepseek/deepseek-chat", "openrouter/deepseek/deepseek-chat"),
        ("azure/gpt-4o", "AsyncAzureOpenAI"),
        ("sonnet", "claude-sonnet-..."),
        ("llama3.2", "write ollama/llama3.2 and set OLLAMA_BASE_URL"),
        ("llama3.2", "compat/llama3.2 with KANTAN_LLM_BASE_URL"),
        ("gemma-3-4b", "ollama/gemma-3-4b"),
        ("meta-llama/Llama-3.2-3B", "compat/meta-llama/Llama-3.2-3B"),
        ("", "ollama/NAME"),
    ],
)
def test_an_unknown_name_comes_with_the_nearest_possibilities(name: str, hint: str) -> None:
    with pytest.raises(ModelNotFoundError) as caught:
        Agent("a", "b", model=name)
    assert hint in caught.value.__notes__[0]
    assert str(caught.value) == f"[kantan-agents][E19] Model not found: {name}"


@pytest.mark.parametrize("name", ["llama3.2", "gtp-4o", "meta-llama/Llama-3.2-3B"])
def test_an_unknown_name_is_one_of_the_server_whose_url_is_set(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KANTAN_LLM_BASE_URL", "http://127.0.0.1:8080/v1")
    with pytest.raises(ModelNotFoundError) as caught:
        Agent("a", "b", model=name)
    (note,) = caught.value.__notes__
    assert f"Write compat/{name} for the server of KANTAN_LLM_BASE_URL, or openrouter/{name}." in note
    assert "OLLAMA" not in note
