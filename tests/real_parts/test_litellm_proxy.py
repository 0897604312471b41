"""Agents before a LiteLLM proxy, and over LiteLLM in the same process; an ``OfflineServer`` is behind it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import agents
import attrs
import openai
import pytest
from agents import ModelSettings
from kantan_llm import AsyncClientBundle
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import BaseModel

from kantan_agents import Agent, set_trace_processors
from kantan_agents.errors import BudgetExceededError
from kantan_agents.middleware import Budget, Fallback
from kantan_agents.testing import OfflineServer, Reply, ReplyLike

KEY = "sk-local"
# Nothing is downloaded and nothing is reported.
QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "NO_PROXY": "127.0.0.1"}
# A connection that is still open when the event loop of a test ends is a warning in another test.
CLOSE = {"connection": "close"}
ASKED = {"include_usage": True}
STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])
APIS = pytest.mark.parametrize("api", ["chat", "responses"])


@attrs.define
class Proxy:
    """A proxy that is running, and the server behind it.

    Attributes:
        url: Base URL of the proxy, for an OpenAI client.
        upstream: The server behind it.
        script: The next replies of that server.
    """

    url: str
    upstream: OfflineServer
    script: list[ReplyLike] = attrs.field(factory=list)

    def replies(self, *replies: ReplyLike) -> None:
        """Set the replies, and forget the requests so far."""
        self.script[:] = replies
        self.upstream.requests.clear()

    def bundle(self, *, api: str = "chat", model: str = "up", key: str = KEY) -> AsyncClientBundle:
        """Return a client for the proxy."""
        direct = DefaultAsyncHttpxClient(trust_env=False)
        client = AsyncOpenAI(
            api_key=key,
            base_url=self.url,
            max_retries=0,
            default_headers=CLOSE,
            http_client=direct,
        )
        return AsyncClientBundle(client, model, "openai" if api == "responses" else "compat", self.url)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    home = tmp_path_factory.mktemp("litellm")
    script: list[ReplyLike] = []
    with OfflineServer(lambda _request: script.pop(0)) as upstream:
        config = home / "config.yaml"
        config.write_text(json.dumps(configuration(upstream)))
        command = [str(Path(sys.executable).with_name("litellm")), "--config", str(config)]
        command += ["--host", "127.0.0.1", "--port", "0", "--telemetry", "False"]
        with running(command, {"PATH": os.environ["PATH"], "HOME": str(home), **QUIET}) as url:
            yield Proxy(f"{url}/v1", upstream, script)


def configuration(upstream: OfflineServer) -> dict[str, Any]:
    behind = {"api_base": upstream.base_url, "api_key": "offline"}
    mocked = {"model": "openai/mocked", "api_key": "offline", "mock_response": "Mocked."}
    return {
        "model_list": [
            {"model_name": "up", "litellm_params": {"model": "openai/up", **behind}},
            {"model_name": "mocked", "litellm_params": mocked},
        ],
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "litellm_settings": {"telemetry": False},
        "general_settings": {"master_key": KEY},
    }


@contextmanager
def running(command: list[str], environment: dict[str, str]) -> Iterator[str]:
    """Start a server of uvicorn; yield its URL once it accepts connections."""
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line)
            found = re.search(r"Uvicorn running on (http://127\.0\.0\.1:\d+)", line)
            if found is not None:
                # The pipe must not become full.
                reader = Thread(target=deque, args=(process.stdout, 0), daemon=True)
                reader.start()
                yield found[1]
                break
        else:
            raise AssertionError("the server ended: " + "".join(lines))
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@pytest.fixture(autouse=True)
def _no_traces() -> None:
    set_trace_processors([])


async def ask(agent: Agent[Any], *, streamed: bool) -> tuple[Any, dict[str, int]]:
    """Run an agent; return its output and its usage."""
    seen: list[Any] = []
    with agent.subscribe(seen.append):
        if streamed:
            async with agent.stream("Hi") as run:
                async for _ in run:
                    pass
        else:
            await agent.run_async("Hi")
    return seen[-1].output, seen[-1].usage


@STREAMED
@APIS
async def test_an_answer_with_its_usage(proxy: Proxy, api: str, streamed: bool) -> None:
    proxy.replies("Hello.")
    output, usage = await ask(Agent("a", "b", model=proxy.bundle(api=api)), streamed=streamed)
    assert (output, usage["total_tokens"], usage["requests_without_usage"]) == ("Hello.", 15, 0)


@STREAMED
async def test_a_name(proxy: Proxy, streamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANTAN_LLM_BASE_URL", proxy.url)
    monkeypatch.setenv("KANTAN_LLM_API_KEY", KEY)
    proxy.replies("Hello.")
    settings = ModelSettings(extra_headers=CLOSE)
    output, usage = await ask(Agent("a", "b", model="compat/up", model_settings=settings), streamed=streamed)
    assert (output, usage["total_tokens"]) == ("Hello.", 15)


@STREAMED
async def test_a_model_that_the_proxy_answers_itself(proxy: Proxy, streamed: bool) -> None:
    output, usage = await ask(Agent("a", "b", model=proxy.bundle(model="mocked")), streamed=streamed)
    assert output == "Mocked."
    assert usage["total_tokens"] > 0


async def test_the_proxy_asks_the_server_behind_it_for_usage(proxy: Proxy) -> None:
    proxy.replies("Hello.")
    await ask(Agent("a", "b", model=proxy.bundle()), streamed=True)
    assert [request.body["stream_options"] for request in proxy.upstream.requests] == [ASKED]


def weather(city: str) -> str:
    """Look up the weather."""
    return f"sunny in {city}"


@STREAMED
@APIS
async def test_tools(proxy: Proxy, api: str, streamed: bool) -> None:
    call = {"tool": "weather", "arguments": {"city": "Ōsaka"}}
    proxy.replies([call, {**call, "arguments": {"city": "Rome"}}], "Sunny in both.")
    agent = Agent("a", "b", model=proxy.bundle(api=api), tools=[weather])
    output, usage = await ask(agent, streamed=streamed)
    assert (output, usage["total_tokens"]) == ("Sunny in both.", 30)
    assert "sunny in Ōsaka" in json.dumps(proxy.upstream.requests[1].input, ensure_ascii=False)


class Capital(BaseModel):
    name: str
    people: int


@STREAMED
@APIS
async def test_structured_output(proxy: Proxy, api: str, streamed: bool) -> None:
    proxy.replies({"name": "Paris", "people": 2_000_000})
    agent = Agent("a", "b", model=proxy.bundle(api=api), output_type=Capital)
    output, usage = await ask(agent, streamed=streamed)
    assert (output, usage["total_tokens"]) == ({"name": "Paris", "people": 2_000_000}, 15)


@STREAMED
async def test_a_reply_that_does_not_fit_is_repaired(proxy: Proxy, streamed: bool) -> None:
    proxy.replies({"name": "Paris"}, {"name": "Paris", "people": 2})
    agent = Agent("a", "b", model=proxy.bundle(), output_type=Capital)
    output, usage = await ask(agent, streamed=streamed)
    assert (output, usage["total_tokens"]) == ({"name": "Paris", "people": 2}, 30)


@STREAMED
@pytest.mark.parametrize(
    ("status", "error"),
    [(429, openai.RateLimitError), (500, openai.InternalServerError), (400, openai.BadRequestError)],
)
async def test_errors_of_the_server_behind_it(
    proxy: Proxy, status: int, error: type[openai.APIStatusError], streamed: bool
) -> None:
    proxy.replies(Reply("no luck today", status=status, headers={"x-should-retry": "false"}))
    with pytest.raises(error, match="no luck today"):
        await ask(Agent("a", "b", model=proxy.bundle()), streamed=streamed)


@STREAMED
async def test_errors_of_the_proxy(proxy: Proxy, streamed: bool) -> None:
    # Status 400 without a database, which could hold other keys; 401 with one.
    with pytest.raises((openai.AuthenticationError, openai.BadRequestError)):
        await ask(Agent("a", "b", model=proxy.bundle(key="sk-wrong")), streamed=streamed)
    with pytest.raises(openai.APIStatusError, match="model"):
        await ask(Agent("a", "b", model=proxy.bundle(model="unknown")), streamed=streamed)


@STREAMED
async def test_a_fallback_after_a_rate_limit(proxy: Proxy, streamed: bool) -> None:
    proxy.replies(Reply("slow down", status=429, headers={"x-should-retry": "false"}))
    agent = Agent("a", "b", model=proxy.bundle(), middleware=[Fallback(proxy.bundle(model="mocked"))])
    assert (await ask(agent, streamed=streamed))[0] == "Mocked."


@STREAMED
@APIS
async def test_a_budget_counts(proxy: Proxy, api: str, streamed: bool) -> None:
    budget = Budget(max_tokens=15, on_unknown_usage="raise")
    agent = Agent("a", "b", model=proxy.bundle(api=api), middleware=[budget])
    proxy.replies("Hello.", "Hello.")
    await ask(agent, streamed=streamed)
    with pytest.raises(BudgetExceededError, match="15 of 15 tokens"):
        await ask(agent, streamed=streamed)
    assert len(proxy.upstream.requests) == 1


async def test_a_server_behind_it_that_rejects_the_question(proxy: Proxy) -> None:
    rejected = Reply("Unrecognized request argument supplied: stream_options", status=400)
    proxy.replies(rejected, "Hello.", "Hello.")
    agent = Agent("a", "b", model=proxy.bundle())
    assert (await ask(agent, streamed=True))[0] == (await ask(agent, streamed=True))[0] == "Hello."
    assert len(proxy.upstream.requests) == 3


@pytest.mark.filterwarnings("ignore")  # of the imported library
@STREAMED
async def test_litellm_in_the_same_process(
    proxy: Proxy, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    from agents.extensions.models.litellm_model import LitellmModel

    model = LitellmModel("openai/up", base_url=proxy.upstream.base_url, api_key="offline")
    target = agents.Agent(name="target", model=model)
    for agent in (
        Agent("a", "b", model=model),
        Agent("a", "b", model=model, model_settings=ModelSettings(temperature=0.5)),
        Agent("a", "b", model=proxy.bundle(), handoffs=[target]),
    ):
        proxy.replies(*([{"tool": "transfer_to_target"}] if agent.handoffs else []), "Hello.")
        output, usage = await ask(agent, streamed=streamed)
        assert (output, usage["total_tokens"]) == ("Hello.", 15 * len(proxy.upstream.requests))


@pytest.mark.filterwarnings("ignore")
async def test_litellm_in_the_same_process_respects_the_settings(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    from agents.extensions.models.litellm_model import LitellmModel

    model = LitellmModel("openai/up", base_url=proxy.upstream.base_url, api_key="offline")
    proxy.replies("Hello.")
    await ask(Agent("a", "b", model=model, model_settings=ModelSettings(include_usage=False)), streamed=True)
    assert proxy.upstream.requests[0].body["stream_options"] == {"include_usage": False}
