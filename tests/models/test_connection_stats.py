"""``connection_stats`` counts the connections of every client that an agent uses."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import anyio
import httpx
import pytest
from agents import ModelProvider, OpenAIChatCompletionsModel, set_default_openai_client
from kantan_llm import AsyncClientBundle, KantanAsyncLLM
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from kantan_agents import (
    Agent,
    AnthropicProvider,
    ConnectionStats,
    GeminiProvider,
    Provider,
    connection_stats,
)
from kantan_agents.models.http_pools import reclaim_connections
from kantan_agents.models.protocol import ProviderContext
from kantan_agents.testing import OfflineServer


def stats_of(url: str) -> ConnectionStats | None:
    return next((stats for stats in connection_stats() if stats.base_url == url), None)


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(0)


def client_for(url: str, places: int = 1) -> AsyncOpenAI:
    limits = httpx.Limits(max_connections=places)
    http: Any = DefaultAsyncHttpxClient(trust_env=False, verify=False, limits=limits)
    return AsyncOpenAI(api_key="x", base_url=url, http_client=http, max_retries=0)


async def test_a_connection_is_active_then_idle_and_further_requests_are_pending() -> None:
    answering = threading.Event()

    def answer(_: object) -> str:
        answering.wait(60)
        return "ok"

    with OfflineServer(answer, keep_alive=True) as server:
        client, url = client_for(server.base_url), server.base_url
        agent = Agent("a", "x", model=AsyncClientBundle(client, "m", "openai", url))
        assert stats_of(url) == ConnectionStats(url, max_connections=1, pools=1)
        async with anyio.create_task_group() as group:
            group.start_soon(agent.run_async, "hi")
            group.start_soon(agent.run_async, "hi")
            await until(lambda: server.requests)
            await until(lambda: (stats_of(url) or ConnectionStats(url)).pending_requests)
            assert stats_of(url) == ConnectionStats(
                url, active=1, pending_requests=1, max_connections=1, pools=1
            )
            answering.set()
        assert stats_of(url) == ConnectionStats(url, idle=1, max_connections=1, pools=1)
        await client.close()


@pytest.mark.parametrize("make", [AnthropicProvider, GeminiProvider])
async def test_a_cancelled_tls_handshake_closes_its_socket_and_frees_its_place(
    make: Callable[..., Provider],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        provider = make("m", api_key="x", base_url=url)
        gc.disable()  # the socket must not wait for it
        try:
            task = asyncio.ensure_future(provider.generate("hi", ProviderContext()))
            accepted, _ = await asyncio.to_thread(listener.accept)
            with accepted:
                accepted.settimeout(30)
                assert await asyncio.to_thread(accepted.recv, 65_536)  # the client's first message
                assert stats_of(url) == ConnectionStats(url, opening=1, max_connections=100, pools=1)
                task.cancel()
                assert await asyncio.to_thread(accepted.recv, 65_536) == b""
        finally:
            gc.enable()
        await asyncio.wait([task])
        assert task.cancelled()
        assert stats_of(url) == ConnectionStats(url, max_connections=100, pools=1)
        await provider.aclose()


async def test_a_request_cancelled_while_a_proxy_opens_its_connection_frees_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        url = "https://api.example"
        provider = AnthropicProvider("m", api_key="x", base_url=url)
        for _ in range(3):
            task = asyncio.ensure_future(provider.generate("hi", ProviderContext()))
            accepted, _ = await asyncio.to_thread(proxy.accept)
            with accepted:
                accepted.settimeout(30)
                assert (await asyncio.to_thread(accepted.recv, 65_536)).startswith(b"CONNECT api.example:443")
                assert stats_of(url) == ConnectionStats(url, active=1, max_connections=100, pools=1)
                task.cancel()
                await asyncio.sleep(0)
                task.cancel()
                assert await asyncio.to_thread(accepted.recv, 65_536) == b""
            await asyncio.wait([task])
            assert stats_of(url) == ConnectionStats(url, max_connections=100, pools=1)
        await provider.aclose()


def test_a_pool_of_an_unknown_kind_is_left_as_it_is_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Pool: ...

    class Transport(httpx.AsyncBaseTransport):
        def __init__(self) -> None:
            self._pool = Pool()

    transport = Transport()
    url = "http://unknown.example"
    reclaim_connections(httpx.AsyncClient(transport=transport), url)
    assert type(transport._pool) is Pool
    assert [record.getMessage() for record in caplog.records] == ["connections_not_reclaimed"]
    assert stats_of(url) is None


def test_a_mock_of_an_openai_client_is_left_as_it_is() -> None:
    mock = MagicMock(spec=AsyncOpenAI)
    model = OpenAIChatCompletionsModel("m", mock)
    assert Agent("a", "x", model=model).sdk_agent.model is model


def by_bundle(client: AsyncOpenAI, url: str) -> object:
    return AsyncClientBundle(client, "m", "openai", url)


def by_llm(client: AsyncOpenAI, url: str) -> object:
    return KantanAsyncLLM(provider="openai", model="m", client=client, base_url=url, api_key_present=True)


def by_sdk_model(client: AsyncOpenAI, url: str) -> object:
    return OpenAIChatCompletionsModel("m", client)


def by_default_client(client: AsyncOpenAI, url: str) -> object:
    set_default_openai_client(client)
    return None


def by_provider(client: AsyncOpenAI, url: str) -> object:
    class Given(ModelProvider):
        def get_model(self, model_name: str | None) -> OpenAIChatCompletionsModel:
            return OpenAIChatCompletionsModel("m", client)

    return Given


@pytest.mark.parametrize("given", [by_bundle, by_llm, by_sdk_model, by_default_client, by_provider])
async def test_the_clients_that_an_application_passes_in_are_counted(
    given: Callable[[AsyncOpenAI, str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    from agents.models import _openai_shared

    monkeypatch.setattr(_openai_shared, "_default_openai_client", None)
    with OfflineServer(lambda _: "ok", keep_alive=True) as server:
        client = client_for(server.base_url)
        model: Any = given(client, server.base_url)
        options = {"model_provider_factory" if given is by_provider else "model": model}
        await Agent("a", "x", **options).run_async("hi")
        assert stats_of(server.base_url) == ConnectionStats(
            server.base_url, idle=1, max_connections=1, pools=1
        )
        await client.close()


async def test_a_url_is_shown_without_user_and_password() -> None:
    client = client_for("http://someone:secret@127.0.0.1:9/v1/")
    Agent("a", "x", model=AsyncClientBundle(client, "m", "openai", "http://127.0.0.1:9/v1"))
    assert stats_of("http://127.0.0.1:9/v1")
    assert not any("secret" in stats.base_url for stats in connection_stats())
    await client.close()
