"""A client of the application works on several event loops, and never sends a request twice."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import agents
import pytest
from agents import (
    Model,
    ModelProvider,
    OpenAIChatCompletionsModel,
    OpenAIProvider,
    OpenAIResponsesModel,
    RunConfig,
    set_default_openai_client,
)
from hypothesis import given
from hypothesis import strategies as st
from kantan_llm import AsyncClientBundle, KantanAsyncLLM
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from kantan_agents import Agent, ConnectionStats, connection_stats
from kantan_agents.errors import ClientLoopError
from kantan_agents.testing import OfflineServer
from tests.sizes import examples

# openai 2 is built on httpx, openai 3 on httpx2.
http: Any = sys.modules[DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0]]


@pytest.fixture
def server() -> Iterator[OfflineServer]:
    with OfflineServer(lambda _: "Hello.", keep_alive=True) as server:
        yield server


def client_for(server: OfflineServer, **options: Any) -> AsyncOpenAI:
    return AsyncOpenAI(api_key="x", base_url=server.base_url, **options)


class Wrapping(Model):
    """A model of the application around one of the SDK."""

    def __init__(self, wrapped: Model) -> None:
        self.wrapped = wrapped

    async def get_response(self, *args: Any, **options: Any) -> Any:
        return await self.wrapped.get_response(*args, **options)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        return self.wrapped.stream_response(*args, **options)


class Given(ModelProvider):
    def __init__(self, model: Model) -> None:
        self.model = model

    def get_model(self, model_name: str | None) -> Model:
        return self.model


def bundle(client: AsyncOpenAI) -> AsyncClientBundle:
    return AsyncClientBundle(client, "m", "openai", str(client.base_url))


def chat(client: AsyncOpenAI) -> Model:
    return OpenAIChatCompletionsModel("m", client)


def with_default_client(client: AsyncOpenAI) -> Agent:
    set_default_openai_client(client, use_for_tracing=False)
    return Agent("a", "x")


AGENTS: dict[str, Callable[[AsyncOpenAI], Agent]] = {
    "bundle": lambda client: Agent("a", "x", model=bundle(client)),
    "KantanAsyncLLM": lambda client: Agent("a", "x", model=KantanAsyncLLM("openai", "m", client)),
    "chat model": lambda client: Agent("a", "x", model=chat(client)),
    "responses model": lambda client: Agent("a", "x", model=OpenAIResponsesModel("m", client)),
    "model around a model": lambda client: Agent("a", "x", model=Wrapping(Wrapping(chat(client)))),
    "factory": lambda client: Agent(
        "a", "x", model="m", model_provider_factory=lambda: OpenAIProvider(openai_client=client)
    ),
    "default client": with_default_client,
}
OPTIONS: dict[str, Callable[[AsyncOpenAI], dict[str, Any]]] = {
    "RunConfig.model": lambda client: {"run_config": RunConfig(model=chat(client))},
    "RunConfig.model_provider": lambda client: {"run_config": RunConfig(model_provider=Given(chat(client)))},
    "run_config of a dict": lambda client: {
        "run_config": {"model": chat(client), "model_provider": OpenAIProvider(openai_client=client)}
    },
}


@pytest.fixture(params=[*AGENTS, *OPTIONS])
def started(request: pytest.FixtureRequest, server: OfflineServer) -> Iterator[tuple[Agent, dict[str, Any]]]:
    client = client_for(server)
    if request.param in AGENTS:
        yield AGENTS[request.param](client), {}
    else:
        yield Agent("a", "x"), OPTIONS[request.param](client)
    asyncio.run(client.close())
    set_default_openai_client(AsyncOpenAI(api_key="x"), use_for_tracing=False)


async def stream(agent: Agent, options: dict[str, Any]) -> None:
    async with agent.stream("hi", **options) as run:
        async for _ in run:
            continue


def test_run_run_async_and_streams_in_turns_send_each_request_once(
    server: OfflineServer, started: tuple[Agent, dict[str, Any]]
) -> None:
    agent, options = started

    async def on_the_callers_loop() -> None:
        agent.run("hi", **options)  # as in a notebook: inside a running loop
        await agent.run_async("hi", **options)
        await stream(agent, options)
        agent.run("hi", **options)
        await agent.run_async("hi", **options)

    agent.run("hi", **options)
    asyncio.run(on_the_callers_loop())
    asyncio.run(agent.run_async("hi", **options))
    agent.run("hi", **options)
    retried = {request.headers["x-stainless-retry-count"] for request in server.requests}
    assert (len(server.requests), retried) == (8, {"0"})


def test_loops_of_many_threads_at_once_send_each_request_once(server: OfflineServer) -> None:
    client = client_for(server, max_retries=0)
    agent = Agent("a", "x", model=chat(client))

    async def runs() -> None:
        await asyncio.gather(*(agent.run_async("hi") for _ in range(3)))

    threads = [threading.Thread(target=lambda: asyncio.run(runs())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 18
    asyncio.run(client.close())


def test_a_hand_off_to_an_sdk_agent_with_a_client_of_its_own_is_sent_once(server: OfflineServer) -> None:
    client = client_for(server)
    target = agents.Agent(name="target", model=chat(client))
    with OfflineServer(lambda _: {"tool": "transfer_to_target", "arguments": {}}) as first:
        agent = Agent("a", "x", model=first.bundle(), handoffs=[target])
        for _ in range(2):
            asyncio.run(agent.run_async("hi"))
            agent.run("hi")
    assert len(server.requests) == 4
    asyncio.run(client.close())


def test_a_client_that_was_used_before_it_was_given_to_an_agent_works(server: OfflineServer) -> None:
    client = client_for(server, max_retries=0)

    async def warm() -> None:
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])

    async def main() -> None:
        await warm()
        agent = Agent("a", "x", model=chat(client))
        await agent.run_async("hi")
        await asyncio.to_thread(agent.run, "hi")
        await warm()
        await client.close()

    asyncio.run(main())
    assert len(server.requests) == 4


@examples(20, 40)
@given(st.lists(st.sampled_from(["here", "background", "another loop"]), min_size=1, max_size=6))
def test_in_any_order_of_loops_each_loop_keeps_its_connection_and_none_is_left(places: list[str]) -> None:
    with OfflineServer(lambda _: "Hello.", keep_alive=True) as server:
        client = client_for(server, max_retries=0)
        agent = Agent("a", "x", model=chat(client))
        url = server.base_url

        async def main() -> None:
            for place in places:
                if place == "here":
                    await agent.run_async("hi")
                elif place == "background":
                    agent.run("hi")
                else:
                    thread = threading.Thread(target=asyncio.run, args=[agent.run_async("hi")])
                    thread.start()
                    thread.join()
            # Those of other loops were closed at the end of their loops.
            assert idle(url) == len({*places} - {"another loop"})
            await client.close()

        asyncio.run(main())
        assert len(server.requests) == len(places)
        until(lambda: not idle(url))  # the background loop closes its connection itself


def idle(url: str) -> int:
    return sum(stats.idle for stats in connection_stats() if stats.base_url == url)


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_client_that_nothing_refers_to_leaves_no_connection_on_any_loop(server: OfflineServer) -> None:
    async def main() -> None:
        agent = Agent("a", "x", model=chat(client_for(server)))
        await agent.run_async("hi")
        agent.run("hi")
        assert idle(server.base_url) == 2

    asyncio.run(main())
    gc.collect()
    until(lambda: not connection_stats_of(server.base_url))


def connection_stats_of(url: str) -> list[ConnectionStats]:
    return [stats for stats in connection_stats() if stats.base_url == url]


def test_a_client_closed_on_another_loop_closes_its_connections_on_their_own(server: OfflineServer) -> None:
    client = client_for(server)
    agent = Agent("a", "x", model=chat(client))
    agent.run("hi")

    async def main() -> None:
        await agent.run_async("hi")
        assert idle(server.base_url) == 2
        await client.close()

    asyncio.run(main())
    until(lambda: not idle(server.base_url))


def test_the_connections_of_a_loop_that_was_closed_without_its_end_are_not_used_or_counted(
    server: OfflineServer,
) -> None:
    client = client_for(server, max_retries=0)
    agent = Agent("a", "x", model=chat(client))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(agent.run_async("hi"))
    left = client._client._transport._pool.connections[0]._connection._network_stream
    loop.close()
    assert idle(server.base_url) == 0
    agent.run("hi")
    assert idle(server.base_url) == 1
    asyncio.run(client.close())
    left._stream._transport._sock.close()  # without the warning of the garbage collector
    left._stream._transport._sock = None


# An HTTP client of the application


def test_hooks_and_authentication_of_an_http_client_apply_on_every_loop(server: OfflineServer) -> None:
    seen: list[str] = []

    async def sent(request: Any) -> None:
        seen.append("sent")

    async def received(response: Any) -> None:
        seen.append("received")

    class Token(http.Auth):
        async def async_auth_flow(self, request: Any) -> Any:
            request.headers["X-Token"] = "secret"
            yield request

    own = http.AsyncClient(event_hooks={"request": [sent], "response": [received]}, auth=Token())
    client = client_for(server, http_client=own)
    agent = Agent("a", "x", model=chat(client))
    for _ in range(2):
        agent.run("hi")
        asyncio.run(agent.run_async("hi"))
    assert [request.headers["x-token"] for request in server.requests] == ["secret"] * 4
    assert seen == ["sent", "received"] * 4
    asyncio.run(client.close())


def test_the_settings_of_a_pool_hold_on_every_loop(server: OfflineServer) -> None:
    limits = http.Limits(max_connections=3, max_keepalive_connections=0)
    address = socket.gethostbyname("localhost")
    own = http.AsyncClient(transport=http.AsyncHTTPTransport(limits=limits, local_address=address))
    agent = Agent("a", "x", model=chat(client_for(server, http_client=own)))

    async def main() -> None:
        agent.run("hi")
        await agent.run_async("hi")
        (stats,) = connection_stats_of(server.base_url)
        assert (stats.pools, stats.max_connections, stats.idle) == (2, 6, 0)

    asyncio.run(main())


class Logging(http.AsyncBaseTransport):
    """A transport of the application around one of the HTTP library."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped
        self.paths: list[str] = []

    async def handle_async_request(self, request: Any) -> Any:
        self.paths.append(request.url.path)
        return await self.wrapped.handle_async_request(request)

    async def aclose(self) -> None:
        await self.wrapped.aclose()


def test_a_transport_around_that_of_the_library_works_on_every_loop(server: OfflineServer) -> None:
    transport = Logging(Logging(http.AsyncHTTPTransport()))
    client = client_for(server, http_client=http.AsyncClient(transport=transport))
    agent = Agent("a", "x", model=chat(client))
    for _ in range(2):
        agent.run("hi")
        asyncio.run(agent.run_async("hi"))
    assert len(server.requests) == len(transport.paths) == 4
    asyncio.run(client.close())


class OneConnection(http.AsyncBaseTransport):
    """A transport of the application that keeps one connection of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: Any = None

    async def handle_async_request(self, request: Any) -> Any:
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        content = await request.aread()
        head = f"POST {request.url.path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(content)}\r\n\r\n"
        writer.write(head.encode() + content)
        answered = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answered.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        return http.Response(200, headers={"content-type": "application/json"}, content=body)


class UnknownPool(OneConnection):
    """Has a pool as that of httpcore 1.0.2, whose private methods have other names."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._pool = object()


@pytest.mark.parametrize("kind", [OneConnection, UnknownPool])
def test_a_transport_that_fails_on_another_loop_is_named_and_its_request_is_not_repeated(
    server: OfflineServer, kind: type[OneConnection]
) -> None:
    port = int(server.base_url.rpartition(":")[2].partition("/")[0])
    transport = kind(port)
    client = client_for(server, http_client=http.AsyncClient(transport=transport))
    agent = Agent("a", "x", model=chat(client))
    loop = asyncio.new_event_loop()
    for _ in range(2):
        loop.run_until_complete(agent.run_async("hi"))
    with pytest.raises(ClientLoopError, match=rf"\[E46\].*{kind.__name__}.*not repeated"):
        agent.run("hi")
    assert len(server.requests) <= 3
    transport.streams[1].close()
    loop.run_until_complete(transport.streams[1].wait_closed())
    loop.close()


def test_a_transport_without_connections_works_on_every_loop() -> None:
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    message = {"role": "assistant", "content": "Hello."}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]

    def answer(request: Any) -> Any:
        return http.Response(200, json={**body, "choices": choices})

    own = http.AsyncClient(transport=http.MockTransport(answer))
    agent = Agent("a", "x", model=chat(AsyncOpenAI(api_key="x", http_client=own)))
    outputs = [agent.run("hi")["result"].final_output]
    outputs += [asyncio.run(agent.run_async("hi"))["result"].final_output for _ in range(2)]
    assert outputs == ["Hello."] * 3
