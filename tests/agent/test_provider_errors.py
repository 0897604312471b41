"""Errors of providers, clients and the SDK during a run propagate unchanged."""

from __future__ import annotations

import socket
from typing import Any

import agents
import kantan_llm
import openai
import pytest
from openai import AsyncOpenAI

from kantan_agents import Agent
from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall

DEFAULTS = {"tool_rules": {"allow": None, "deny": None, "params": {}}, "result": None, "history": []}


def without_retries(server: Any, api: Any = "responses") -> Any:
    """Return a bundle whose client does not retry, so that tests do not wait."""
    bundle = server.bundle(api=api)
    client = bundle.client.with_options(max_retries=0)
    return kantan_llm.AsyncClientBundle(client, bundle.model, bundle.provider, bundle.base_url)


async def run_and_catch(model: Any, error: Any, traces: Any, **options: Any) -> Any:
    context: dict = {}
    with pytest.raises(error) as caught:
        await Agent("a", "b", model=model, **options).run_async("my question", context)
    assert context == DEFAULTS
    span = traces.final_span()
    assert (span.input, span.error["data"]["error_type"]) == (
        "my question",
        type(caught.value).__name__,
    )
    assert len(traces.traces(keywords=["my question"], has_error=True)) == 1
    assert agents.get_current_trace() is None
    assert caught.value.kantan_run.id == traces.traces()[0].metadata["agent_run_id"]
    return caught.value


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
async def test_http_errors(traces: Any, api: Any, status: Any, error: Any) -> None:
    with OfflineServer([Reply("sorry", status=status)]) as server:
        raised = await run_and_catch(without_retries(server, api), error, traces)
    assert raised.status_code == status
    assert "sorry" in str(raised)


async def test_a_transient_error_is_retried_by_the_client() -> None:
    busy = Reply("busy", status=429, headers={"retry-after-ms": "1"})
    with OfflineServer([busy, "fine"]) as server:
        assert (await Agent("a", "b", model=server.bundle()).run_async("hi"))["result"].final_output == "fine"
        assert len(server.requests) == 2


async def test_an_unreachable_server(traces: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    client = AsyncOpenAI(api_key="x", base_url=url, max_retries=0)
    bundle = kantan_llm.AsyncClientBundle(client, "m", "openai", url)
    await run_and_catch(bundle, openai.APIConnectionError, traces)
    await client.close()


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize("body", [b"<html>oops</html>", b"", b'{"half": ', b"[]", b"null", b"{}"])
async def test_a_reply_that_is_not_json_or_not_an_answer_ends_the_run_with_an_error(
    traces: Any, api: Any, body: Any
) -> None:
    with OfflineServer([Reply(body=body)]) as server:
        await run_and_catch(without_retries(server, api), Exception, traces)


async def test_a_timeout(traces: Any) -> None:
    with OfflineServer([Reply("late", delay=30)]) as server:
        bundle = without_retries(server)
        client = bundle.client.with_options(timeout=0.2)
        slow = kantan_llm.AsyncClientBundle(client, "m", "openai", bundle.base_url)
        await run_and_catch(slow, openai.APITimeoutError, traces)


async def test_a_reply_that_is_not_structured_output(traces: Any) -> None:
    from kantan_agents import RUBRIC

    with OfflineServer(["no JSON at all"] * 5) as server:
        await run_and_catch(server.bundle(), agents.ModelBehaviorError, traces, output_type=RUBRIC)


async def test_arguments_that_are_not_json_are_reported_to_the_model() -> None:
    def tool(a: int) -> str:
        """Do it."""
        return "done"

    with OfflineServer([ScriptedToolCall("tool", '{"a": '), "I see"]) as server:
        context = await Agent("a", "b", model=server.bundle(), tools=[tool]).run_async("hi")
    assert context["result"].final_output == "I see"


async def test_too_many_turns_raise_the_error_of_the_sdk(traces: Any) -> None:
    def tool() -> str:
        """Do it."""
        return "done"

    with OfflineServer(lambda request: ScriptedToolCall("tool")) as server:
        context: dict = {}
        with pytest.raises(agents.MaxTurnsExceeded) as caught:
            await Agent("a", "b", model=server.bundle(), tools=[tool]).run_async("hi", context, max_turns=2)
    assert caught.value.run_data is not None
    assert context == DEFAULTS
    assert traces.traces(has_error=True)


async def test_a_tripped_guardrail_raises_the_error_of_the_sdk(traces: Any) -> None:
    @agents.input_guardrail
    async def never(ctx: Any, agent: Any, input: Any) -> Any:
        return agents.GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    with OfflineServer(["x"]) as server:
        await run_and_catch(
            server.bundle(), agents.InputGuardrailTripwireTriggered, traces, input_guardrails=[never]
        )


async def test_an_unknown_runner_option_is_a_type_error(traces: Any) -> None:
    with OfflineServer([]) as server:
        with pytest.raises(TypeError, match="max_turn"):
            await Agent("a", "b", model=server.bundle()).run_async("hi", max_turn=3)
        assert server.requests == []
    assert traces.traces(has_error=True)
