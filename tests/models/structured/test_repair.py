"""Repairs: a reply that does not fit goes back to the model with its problems, ``output_repairs`` times."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents import ModelBehaviorError, RunConfig

from kantan_agents import Agent
from kantan_agents.core.events import ModelCallStarted
from kantan_agents.errors import StructuredOutputError
from kantan_agents.testing import OfflineServer, Reply
from tests.models.structured.invoices import DATA, TEXT, invoice_agent

UNFIT = {"number": "A-1", "items": [{"name": "lamp", "price": "cheap"}, {"name": 3, "price": 1}]}


def messages(server: OfflineServer, number: int) -> list[Any]:
    body = server.requests[number].body
    return list(body.get("messages") or body["input"])


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
async def test_the_model_gets_its_reply_and_the_problems_with_paths(api: str, mode: Any) -> None:
    with OfflineServer([json.dumps(UNFIT), TEXT]) as server:
        agent = invoice_agent(server.bundle(api=api), output_mode=mode)
        context = await agent.run_async("Read it")
    assert context["invoice"] == DATA
    *_, reply, feedback = messages(server, 1)
    assert (reply["role"], feedback["role"]) == ("assistant", "user")
    assert json.dumps(UNFIT) in json.dumps(reply["content"]) or reply["content"] == json.dumps(UNFIT)
    assert "items[0].price: " in feedback["content"]
    assert "items[1].name: " in feedback["content"]
    assert ("Call the tool" if mode == "tool" else "Reply again") in feedback["content"]


@pytest.mark.parametrize("repairs", [0, 1, 3])
async def test_repairs_are_limited_to_the_configured_number(repairs: int) -> None:
    with OfflineServer(lambda _request: UNFIT) as server:
        agent = invoice_agent(server.bundle(), output_mode="tool", output_repairs=repairs)
        with pytest.raises(StructuredOutputError, match=r"items\[0\].price") as caught:
            await agent.run_async("Read it")
    assert len(server.requests) == 1 + repairs
    assert caught.value.count == 1 + repairs


async def test_the_error_reaches_the_sdks_error_handlers() -> None:
    with OfflineServer(lambda _request: UNFIT) as server:
        agent = invoice_agent(server.bundle())
        with pytest.raises(ModelBehaviorError) as caught:
            await agent.run_async("Read it")
        assert getattr(caught.value, "run_data", None) is not None

        handled: list[Any] = []

        def handle(data: Any) -> Any:
            handled.append(data.error)
            return DATA

        handlers: dict[str, Any] = {"invalid_final_output": handle}
        context = await agent.run_async("Read it", error_handlers=handlers)
    assert context["invoice"] == DATA
    assert isinstance(handled[0], StructuredOutputError)


async def test_a_streamed_run_repairs_as_well() -> None:
    with OfflineServer([json.dumps(UNFIT), TEXT], profile=None) as server:
        async with invoice_agent(server.bundle(), output_mode="native").stream("Read it") as run:
            async for _ in run:
                pass
        assert run.context["invoice"] == DATA
    with OfflineServer(lambda _request: UNFIT) as server, pytest.raises(StructuredOutputError):
        async with invoice_agent(server.bundle()).stream("Read it") as run:
            async for _ in run:
                pass


async def test_the_usage_of_all_attempts_is_counted() -> None:
    with OfflineServer([UNFIT, DATA]) as server:
        context = await invoice_agent(server.bundle(), output_mode="native").run_async("Read it")
    usage = context["result"].context_wrapper.usage
    assert (usage.requests, usage.total_tokens) == (2, 30)


async def test_a_failed_run_does_not_change_the_context() -> None:
    given = {"invoice": "old", "history": []}
    with OfflineServer(lambda _request: UNFIT) as server, pytest.raises(StructuredOutputError):
        await invoice_agent(server.bundle()).run_async("Read it", given)
    assert given["invoice"] == "old"
    assert given["history"] == []


async def test_a_stored_conversation_only_gets_the_feedback() -> None:
    with OfflineServer([json.dumps(UNFIT), TEXT, json.dumps(UNFIT), TEXT]) as server:
        agent = invoice_agent(server.bundle(), output_mode="native")
        await agent.run_async("Read it", previous_response_id="resp_0")
        await agent.run_async("Read it", conversation_id="conv_0")
    first, second, third, fourth = (request.body for request in server.requests)
    assert first["previous_response_id"] == "resp_0"
    assert second["previous_response_id"] not in ("resp_0", None)
    assert third["conversation"] == fourth["conversation"] == "conv_0"
    for body in (second, fourth):
        (feedback,) = body["input"]
        assert "does not fit" in feedback["content"]


async def test_a_truncated_reply_is_repaired_with_a_request_to_be_brief() -> None:
    cut = Reply(TEXT[:-20], is_cut=True)
    with OfflineServer([cut, TEXT]) as server:
        context = await invoice_agent(server.bundle(api="chat")).run_async("Read it")
    assert context["invoice"] == DATA
    assert "breaks off" in messages(server, 1)[-1]["content"]


async def test_traces_without_sensitive_data_omit_the_replies(traces: Any) -> None:
    with OfflineServer(lambda _request: {"number": 5, "items": "SECRET"}) as server:
        agent = invoice_agent(server.bundle())
        with pytest.raises(StructuredOutputError):
            await agent.run_async("Read it", run_config=RunConfig(trace_include_sensitive_data=False))
    assert "SECRET" not in json.dumps([span.raw for span in traces.spans()], default=str)


async def test_a_schema_that_is_not_enforced_does_not_change_the_mode() -> None:
    with OfflineServer(['{"a": "many"}', '{"a": 1}'], profile=None) as server:
        # Free-form objects have no strict form, so the provider does not enforce the schema.
        agent = Agent("a", "x", model=server.bundle(api="chat"), output_type=dict[str, int])
        context = await agent.run_async("Go")
    assert context["result"].final_output == {"a": 1}
    assert all("response_format" in request.body for request in server.requests)


async def test_the_attempts_of_a_cancelled_run_are_recorded(traces: Any) -> None:
    events: list[Any] = []
    again = asyncio.Event()

    def hear(event: Any) -> None:
        if isinstance(event, ModelCallStarted):
            events.append(event)
            if len(events) == 2:
                again.set()

    with OfflineServer([UNFIT, Reply(TEXT, delay=5)]) as server:
        agent = invoice_agent(server.bundle())
        with agent.subscribe(hear):
            task = asyncio.create_task(agent.run_async("Read it"))
            await again.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    (span,) = [span for span in traces.spans(span_type="custom") if span.name == "structured_output"]
    assert [attempt["fits"] for attempt in span.raw["span_data"]["data"]["attempts"]] == [False]
