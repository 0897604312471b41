"""``to_provider_response``: the result of a finished run as a ``ProviderResponse``."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from agents import function_tool

from kantan_agents import Agent, ContentSegment, ProviderResponse, to_provider_response
from kantan_agents.errors import InvalidOptionError
from kantan_agents.models.protocol import ProviderContext
from kantan_agents.models.protocol.usage import TokenUsage, usage_of
from kantan_agents.testing import OfflineServer, ScriptedModel, ScriptedToolCall, assistant_message
from tests.models.protocol.scripted import Scripted, call, text

UI = ContentSegment("ui", ui={"component": "Chart"})


def read(path: str) -> str:
    """Read."""
    return f"content of {path}"


@attrs.frozen
class City:
    """A city."""

    name: str


async def test_the_response_has_the_segments_of_the_last_answer_and_metadata_of_the_run() -> None:
    usage = {"usage": {"input_tokens": 3, "output_tokens": 1}}
    provider = Scripted(
        ProviderResponse([text("I read."), call("read", {"path": "a"}, "c1")], usage),
        ProviderResponse([text("It "), UI, text("says so.")], usage),
    )
    context = await Agent("reader", "x", tools=[read], model=provider).run_async("Go.")
    response = to_provider_response(context["result"])
    assert response == to_provider_response(context)
    assert ProviderResponse.from_json(response.to_json()) == response
    assert response.segments == (text("It "), UI, text("says so."))
    assert response.metadata == {
        "usage": {
            "requests": 2,
            "input_tokens": 6,
            "output_tokens": 2,
            "total_tokens": 8,
            "cached_tokens": 0,
            "reasoning_tokens": 0,
        },
        "agent": "reader",
        "model": "scripted",
        "run_id": provider.contexts[0].run_id,
        "finish_reason": "stop",
        "tool_calls": [{"id": "c1", "name": "read", "args": {"path": "a"}}],
    }


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_the_result_of_a_run_with_any_model_can_be_converted(api: str) -> None:
    with OfflineServer([ScriptedToolCall("read", {"path": "a"}), "done"]) as server:
        agent = Agent("a", "x", tools=[read], model=server.bundle(api=api))
        response = to_provider_response(await agent.run_async("Go."))
    assert response.segments == (text("done"),)
    assert [made["name"] for made in response.metadata["tool_calls"]] == ["read"]


async def test_a_structured_output_becomes_json() -> None:
    model = ScriptedModel([[assistant_message('{"name": "神戸"}')]])
    context = await Agent("a", "x", model=model, output_type=City, output_mode="native").run_async("Go.")
    assert to_provider_response(context).segments == (text('{"name": "神戸"}'),)


async def test_the_output_of_a_tool_that_ends_the_run_is_the_answer() -> None:
    agent = Agent("a", "x", tools=[read], model=Scripted(call("read", {"path": "a"})))
    agent.sdk_agent.tool_use_behavior = "stop_on_first_tool"
    assert to_provider_response(await agent.run_async("Go.")).segments == (text("content of a"),)


async def test_an_unfinished_run_raises_an_error() -> None:
    @function_tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    context = await Agent("a", "x", tools=[pay], model=Scripted(call("pay"))).run_async("Go.")
    wrong: list[Any] = [context, None, {}, {"result": None}, "done"]
    for given in wrong:
        with pytest.raises(InvalidOptionError):
            to_provider_response(given)


async def test_an_agent_can_be_the_provider_of_another_agent() -> None:
    class Expert:
        name = "expert"

        def __init__(self) -> None:
            self.agent = Agent("expert", "You know.", model=Scripted([text("42"), UI]))

        async def generate(self, prompt: str, context: ProviderContext) -> ProviderResponse:
            return to_provider_response(await self.agent.run_async(prompt))

    context = await Agent("asker", "x", model=Expert()).run_async("What?")
    assert to_provider_response(context).segments == (text("42"), UI)


@pytest.mark.parametrize("count", [-1, 10**400, -(10**400), float("nan"), 1.5, True, "7", None])
def test_a_usage_count_that_is_not_a_number_of_tokens_is_ignored(count: Any) -> None:
    usage = usage_of({"usage": {"input_tokens": count, "output_tokens": 7}})
    assert usage == TokenUsage(input_tokens=0, output_tokens=7, total_tokens=7)
