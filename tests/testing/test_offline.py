from __future__ import annotations

import asyncio
import json
import socket
import urllib.error
import urllib.request
from typing import Any

import agents
import openai
import pytest

from kantan_agents import Agent
from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall

LONG = "It is sunny in Oslo, 21.5 degrees, with a light wind from the 北. " * 3


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_streamed_and_plain_replies_are_the_same(api: Any) -> None:
    def tool(city: str) -> str:
        """Tell the weather."""
        return f"sunny in {city}"

    with OfflineServer([ScriptedToolCall("tool", {"city": "Ōsaka"}), LONG] * 2) as server:
        agent = Agent("a", "b", model=server.bundle(api=api), tools=[tool])
        plain = (await agent.run_async("hi"))["result"]
        streamed = agents.Runner.run_streamed(agent.sdk_agent, "hi", context={})
        deltas = [
            event.data.delta
            async for event in streamed.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        ]
        assert plain.final_output == streamed.final_output == "".join(deltas) == LONG
        assert len(deltas) > 3
        kinds = [[type(item).__name__ for item in result.new_items] for result in (plain, streamed)]
        assert kinds[0] == kinds[1]
        assert plain.context_wrapper.usage.total_tokens == streamed.context_wrapper.usage.total_tokens == 30
        assert [bool(request.body.get("stream")) for request in server.requests] == [False] * 2 + [True] * 2


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_text_and_several_tool_calls_in_one_reply(api: Any) -> None:
    called = []

    def tool(n: int) -> str:
        """Do it."""
        called.append(n)
        return str(n)

    reply = Reply("Let me see.", [ScriptedToolCall("tool", {"n": 1}), ScriptedToolCall("tool", {"n": 2})])
    for streamed in (False, True):
        with OfflineServer([reply, "done"]) as server:
            agent = Agent("a", "b", model=server.bundle(api=api), tools=[tool])
            if streamed:
                result = agents.Runner.run_streamed(agent.sdk_agent, "hi", context={})
                async for _ in result.stream_events():
                    pass
            else:
                result = (await agent.run_async("hi"))["result"]
            assert result.final_output == "done"
    assert sorted(called) == [1, 1, 2, 2]


async def test_replies_may_be_made_from_the_request() -> None:
    def reply(request: Any) -> Any:
        return {
            "model": request.model,
            "path": request.path,
            "last": request.body["input"][-1]["content"],
        }

    with OfflineServer(reply) as server:
        context = await Agent("a", "b", model=server.bundle("m-1")).run_async("ping")
    assert json.loads(context["result"].final_output) == {
        "model": "m-1",
        "path": "/v1/responses",
        "last": "ping",
    }


async def test_a_script_without_replies_left_is_reported() -> None:
    with OfflineServer(["one"]) as server:
        agent = Agent("a", "b", model=server.bundle())
        await agent.run_async("hi")
        with pytest.raises(openai.BadRequestError, match="the script of the OfflineServer has no reply left"):
            await agent.run_async("hi")
        assert len(server.requests) == 2


async def test_concurrent_requests_are_served() -> None:
    with OfflineServer(lambda request: request.body["input"][-1]["content"]) as server:
        agent = Agent("a", "b", model=server.bundle())
        contexts = await asyncio.gather(*(agent.run_async(f"q{n}") for n in range(40)))
    assert [c["result"].final_output for c in contexts] == [f"q{n}" for n in range(40)]


async def test_using_it_outside_a_with_statement_is_an_error_with_advice() -> None:
    server = OfflineServer(["x"])
    with pytest.raises(RuntimeError, match="use it in a with statement"):
        server.bundle()
    with server, pytest.raises(RuntimeError, match="running already"):
        server.__enter__()


async def test_it_listens_on_loopback_only_and_serves_nothing_else() -> None:
    with OfflineServer(["x"]) as server:
        assert server.base_url.startswith("http://127.0.0.1:")
        with pytest.raises(urllib.error.HTTPError) as caught:
            await asyncio.to_thread(urllib.request.urlopen, server.base_url + "/models")
        assert caught.value.code == 404
        caught.value.close()


@pytest.mark.parametrize("wrong", [3, None, [1], object()])
async def test_a_reply_of_the_wrong_kind_is_a_type_error_at_once(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"replies\[0\].* a reply is a str"):
        OfflineServer([wrong])


async def test_a_server_stops_while_a_reply_is_pending() -> None:
    with OfflineServer([Reply("late", delay=60)]) as server:
        client = server.bundle().client
        request = asyncio.create_task(client.responses.create(model="m", input="hi"))
        while not server.requests:  # noqa: ASYNC110 - another thread fills it
            await asyncio.sleep(0.01)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await client.close()


def test_a_response_does_not_wait_until_its_headers_are_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners: list[socket.socket] = []
    create = socket.create_server

    def recorded(*args: Any, **options: Any) -> socket.socket:
        listeners.append(create(*args, **options))
        return listeners[-1]

    monkeypatch.setattr(socket, "create_server", recorded)
    with OfflineServer(["ok"]) as server:
        (listener,) = listeners
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert str(listener.getsockname()[1]) in server.base_url
