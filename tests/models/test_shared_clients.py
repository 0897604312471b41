"""Models of one API share a client, clients share their TLS settings, and unused connections are closed."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import certifi
import pytest
from kantan_llm import get_async_llm_client
from openai import AsyncOpenAI

from kantan_agents import Agent, AnthropicProvider, GeminiProvider, connection_stats
from kantan_agents.models import resolve
from kantan_agents.models.client_pool import RecentPools, shared_clients
from kantan_agents.models.connections import PerLoop
from kantan_agents.models.protocol import ProviderContext
from kantan_agents.models.tls import tls_settings
from kantan_agents.testing import OfflineServer
from tests.models.protocol.wire_server import Body, WireServer, recorded


@pytest.fixture(autouse=True)
def _no_pools_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "_pools", RecentPools(maxsize=2))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OfflineServer]:
    with OfflineServer(lambda _: "ok", keep_alive=True) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


def client_of(name: str) -> AsyncOpenAI:
    return resolve.pool_for(name)[1].client()


def tls_of(client: AsyncOpenAI) -> ssl.SSLContext:
    http: Any = client._client
    settings: ssl.SSLContext = http._transport._pool._ssl_context
    return settings


async def idle_connections(server: OfflineServer) -> int:
    for _ in range(20):  # connections are closed in tasks of the loop
        await asyncio.sleep(0)
    return sum(stats.idle for stats in connection_stats() if stats.base_url == server.base_url)


async def test_models_of_one_api_share_their_client(server: OfflineServer) -> None:
    assert client_of("openai/a") is client_of("openai/b")


async def test_another_key_or_organization_gets_a_client_of_its_own(
    server: OfflineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = client_of("openai/a")
    monkeypatch.setenv("OPENAI_ORG_ID", "another")
    second = client_of("openai/b")
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    third = client_of("openai/a")
    assert [client.organization for client in (first, second, third)] == [None, "another", "another"]
    assert [client.api_key for client in (first, second, third)] == ["offline", "offline", "another"]


async def test_a_name_gets_another_client_after_the_organization_in_the_environment_has_changed(
    server: OfflineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for organization in ("one", "two", "one"):
        monkeypatch.setenv("OPENAI_ORG_ID", organization)
        found.append(client_of("openai/a"))
    assert [client.organization for client in found] == ["one", "two", "one"]
    assert found[0] is found[2]


async def test_a_client_is_the_one_that_kantan_llm_creates(server: OfflineServer) -> None:
    ours, theirs = client_of("openai/a"), get_async_llm_client("openai/a").client
    names = ("api_key", "base_url", "timeout", "organization", "project")
    assert {name: getattr(ours, name) for name in names} == {name: getattr(theirs, name) for name in names}
    assert ours._client.timeout == theirs._client.timeout
    await theirs.close()


async def test_a_thousand_clients_read_the_certificates_once(
    server: OfflineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [client_of("openai/a")]
    read: list[object] = []
    load = ssl.SSLContext.load_verify_locations

    def counted(settings: ssl.SSLContext, *args: Any, **kwargs: Any) -> None:
        read.append(args)
        load(settings, *args, **kwargs)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counted)
    for number in range(1_000):
        monkeypatch.setenv("OPENAI_API_KEY", f"key-{number}")
        clients.append(client_of("openai/a"))
    assert len({id(client) for client in clients}) == 1_001
    assert len({id(tls_of(client)) for client in clients}) == 1
    assert not read
    ssl.create_default_context(cafile=certifi.where())
    assert len(read) == 1, "the test counts what reads certificates"


def test_other_certificates_in_the_environment_are_read_by_later_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    usual = tls_settings()
    assert tls_settings() is usual
    certificates = tmp_path / "certificates.pem"
    one = Path(certifi.where()).read_text("utf-8").partition("-----END CERTIFICATE-----")
    certificates.write_text("".join(one[:2]), "utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates))
    own = tls_settings()
    assert len(own.get_ca_certs()) == 1 < len(usual.get_ca_certs())
    certificates.write_text(Path(certifi.where()).read_text("utf-8"), "utf-8")
    assert len(tls_settings().get_ca_certs()) == len(usual.get_ca_certs())
    assert len(own.get_ca_certs()) == 1
    monkeypatch.delenv("SSL_CERT_FILE")
    assert tls_settings() is usual


async def test_a_name_gets_another_client_after_the_file_of_certificates_has_changed(
    server: OfflineServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = tmp_path / "certificates.pem"
    shutil.copy(certifi.where(), certificates)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    monkeypatch.delenv("CLAUDE_API_KEY")
    before, claude = client_of("openai/a"), resolve.anthropic_for("claude-a")
    assert client_of("openai/a") is before
    assert claude is not None
    assert resolve.anthropic_for("claude-a") == claude
    os.utime(certificates, (0, 0))
    assert tls_of(client_of("openai/a")) is not tls_of(before)
    assert resolve.anthropic_for("claude-a") != claude


async def test_an_api_that_is_no_longer_used_keeps_no_idle_connection(
    server: OfflineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = []
    for number in range(10):
        monkeypatch.setenv("OPENAI_API_KEY", f"key-{number}")
        agents.append(Agent("a", "x", model="openai/a"))
        await agents[-1].run_async("hi")
        assert await idle_connections(server) <= 2
    await agents[0].run_async("hi")  # its client is not closed
    del agents
    await Agent("a", "x", model="openai/b").run_async("hi")  # the SDK refers to the last agent
    gc.collect()
    assert await idle_connections(server) == 1
    await client_of("openai/b").close()


async def test_the_api_that_was_not_used_for_the_longest_time_loses_its_idle_connections(
    server: OfflineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "_pools", RecentPools(maxsize=3))

    def clients_of(key: str) -> Any:
        monkeypatch.setenv("OPENAI_API_KEY", key)
        return resolve.pool_for("openai/a")[1]

    first, second, third = (clients_of(key) for key in ("first", "second", "third"))
    assert clients_of("first") is first
    clients_of("fourth")
    clients_of("fifth")
    assert clients_of("first") is first
    kept = list(resolve._pools.values())
    assert first in kept
    assert second not in kept
    assert third not in kept


async def test_models_of_one_api_keep_its_connection_while_one_of_them_is_used(server: OfflineServer) -> None:
    for number in range(10):
        await Agent("a", "x", model=f"openai/m-{number}").run_async("hi")
        assert await idle_connections(server) == 1
    await client_of("openai/a").close()


async def test_a_request_continues_when_its_client_is_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answering = threading.Event(), threading.Event()

    def answer(_: object) -> str:
        asked.set()
        answering.wait(60)
        return "It is sunny."

    with OfflineServer(answer) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        run = asyncio.ensure_future(Agent("a", "x", model="openai/a").run_async("hi"))
        await asyncio.to_thread(asked.wait, 30)
        for number in range(5):
            monkeypatch.setenv("OPENAI_API_KEY", f"key-{number}")
            client_of("openai/a")
        gc.collect()
        await asyncio.sleep(0)
        answering.set()
        assert (await run)["result"].final_output == "It is sunny."


@pytest.mark.parametrize(
    ("kind", "reply"), [(AnthropicProvider, "anthropic_tool_use"), (GeminiProvider, "gemini_function_calls")]
)
async def test_a_provider_that_is_dropped_closes_its_connections(kind: Any, reply: str) -> None:
    answer = Body(recorded(reply), headers={"connection": "keep-alive"})
    with WireServer([answer] * 3) as server:
        for _ in range(3):
            provider = kind("m", api_key="x", base_url=server.url)
            await provider.generate("hi", ProviderContext())
            [stats] = [stats for stats in connection_stats() if stats.base_url == server.url]
            assert (stats.idle, stats.pools) == (1, 1)
            del provider
            for _ in range(20):
                await asyncio.sleep(0)
            gc.collect()
            assert not [stats for stats in connection_stats() if stats.base_url == server.url]


async def test_objects_per_loop_are_closed_on_their_loop_when_nothing_uses_them() -> None:
    closed: list[tuple[object, asyncio.AbstractEventLoop]] = []
    done = asyncio.Event()

    async def close(item: object) -> None:
        closed.append((item, asyncio.get_running_loop()))
        done.set()

    held: PerLoop[str] = PerLoop(lambda: "ours", close)
    held.get()

    async def get_in_another(held: PerLoop[str]) -> None:
        held.get()

    await asyncio.to_thread(asyncio.run, get_in_another(held))  # this loop is closed, so nothing is called
    del held
    await done.wait()
    assert closed == [("ours", asyncio.get_running_loop())]


def test_objects_per_loop_are_closed_while_another_thread_adds_its_own() -> None:
    class Loop:
        def call_soon_threadsafe(self, *_: object) -> None: ...

    async def close(_: str) -> None: ...

    held: PerLoop[str] = PerLoop(lambda: "ours")
    made: Any = held._made
    kept = [Loop() for _ in range(30)]
    made.update(dict.fromkeys(kept, "ours"))
    is_over = threading.Event()

    def add() -> None:
        while not is_over.is_set():
            kept.append(Loop())
            made[kept[-1]] = "ours"
            del kept[:-200]

    adding = threading.Thread(target=add)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        adding.start()
        for _ in range(1_500):
            held.on_each_loop(close)
    finally:
        is_over.set()
        adding.join()
        sys.setswitchinterval(interval)


async def test_clients_are_found_again_while_anything_uses_them(server: OfflineServer) -> None:
    _, pool = resolve.pool_for("openai/a")
    resolve._pools.clear()
    resolved = resolve.resolve_llm("openai/b", provider=None, providers=None, api_key=None, base_url=None)
    assert shared_clients(resolved) is pool.clients
