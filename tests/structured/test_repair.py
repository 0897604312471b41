"""A reply that does not fit goes back to the model with what is wrong, as often as the agent says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents import ModelBehaviorError, RunConfig

from kantan_agents import Agent
from kantan_agents.errors import StructuredOutputError
from kantan_agents.events import ModelCallStarted
from kantan_agents.testing import OfflineServer, Reply
from tests.structured.invoices import DATA, TEXT, invoice_agent

pytestmark = pytest.mark.anyio

UNFIT = {"number": "A-1", "items": [{"name": "lamp", "price": "cheap"}, {"name": 3, "price": 1}]}


def messages(server: OfflineServer, number: int) -> list[Any]:
    body = server.requests[number].body
    return list(body.get("messages") or body["input"])


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
async def test_the_model_reads_its_reply_and_what_is_wrong_with_it_by_path(api: str, mode: Any) -> None:
    with OfflineServer([json.dumps(UNFIT), TEXT]) as server:
        agent = invoice_agent(server.bundle(api=api), output_mode=mode)
        context = await agent.run_async("Read it")
    assert context["invoice"] == DATA
    *_, reply, told = messages(server, 1)
    assert (reply["role"], told["role"]) == ("assistant", "user")
    assert json.dumps(UNFIT) in json.dumps(reply["content"]) or reply["content"] == json.dumps(UNFIT)
    assert "items[0].price: " in told["content"]
    assert "items[1].name: " in told["content"]
    assert ("Call the tool" if mode == "tool" else "Reply again") in told["content"]


@pytest.mark.parametrize("repairs", [0, 1, 3])
async def test_as_often_as_the_agent_says(repairs: int) -> None:
    with OfflineServer(lambda _request: UNFIT) as server:
        agent = invoice_agent(server.bundle(), output_mode="tool", output_repairs=repairs)
        with pytest.raises(StructuredOutputError, match=r"items\[0\].price") as caught:
            await agent.run_async("Read it")
    assert len(server.requests) == 1 + repairs
    assert caught.value.count == 1 + repairs


async def test_the_error_is_the_sdks_as_well_and_its_handlers_hear_of_it() -> None:
    with OfflineServer(lambda _request: UNFIT) as server:
        agent = invoice_agent(server.bundle())
        with pytest.raises(ModelBehaviorError) as caught:
            await agent.run_async("Read it")
        assert getattr(caught.value, "run_data", None) is not None

        heard: list[Any] = []

        def handle(data: Any) -> Any:
            heard.append(data.error)
            return DATA

        handlers: dict[str, Any] = {"invalid_final_output": handle}
        context = await agent.run_async("Read it", error_handlers=handlers)
    assert context["invoice"] == DATA
    assert isinstance(heard[0], StructuredOutputError)


async def test_also_in_a_stream() -> None:
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


async def test_a_failed_run_leaves_the_context_as_it_was() -> None:
    given = {"invoice": "old", "history": []}
    with OfflineServer(lambda _request: UNFIT) as server, pytest.raises(StructuredOutputError):
        await invoice_agent(server.bundle()).run_async("Read it", given)
    assert given["invoice"] == "old"
    assert given["history"] == []


async def test_a_conversation_kept_by_the_provider_gets_the_feedback_only() -> None:
    with OfflineServer([json.dumps(UNFIT), TEXT, json.dumps(UNFIT), TEXT]) as server:
        agent = invoice_agent(server.bundle(), output_mode="native")
        await agent.run_async("Read it", previous_response_id="resp_0")
        await agent.run_async("Read it", conversation_id="conv_0")
    first, second, third, fourth = (request.body for request in server.requests)
    assert first["previous_response_id"] == "resp_0"
    assert second["previous_response_id"] not in ("resp_0", None)
    assert third["conversation"] == fourth["conversation"] == "conv_0"
    for body in (second, fourth):
        (told,) = body["input"]
        assert "does not fit" in told["content"]


async def test_a_reply_that_breaks_off_is_asked_for_in_brief() -> None:
    cut = Reply(TEXT[:-20], is_cut=True)
    with OfflineServer([cut, TEXT]) as server:
        context = await invoice_agent(server.bundle(api="chat")).run_async("Read it")
    assert context["invoice"] == DATA
    assert "breaks off" in messages(server, 1)[-1]["content"]


async def test_what_the_model_wrote_is_kept_out_of_traces_that_must_not_have_it(traces: Any) -> None:
    with OfflineServer(lambda _request: {"number": 5, "items": "SECRET"}) as server:
        agent = invoice_agent(server.bundle())
        with pytest.raises(StructuredOutputError):
            await agent.run_async("Read it", run_config=RunConfig(trace_include_sensitive_data=False))
    assert "SECRET" not in json.dumps([span.raw for span in traces.spans()], default=str)


async def test_a_schema_that_is_not_enforced_is_no_reason_to_leave_the_mode() -> None:
    with OfflineServer(['{"a": "many"}', '{"a": 1}'], profile=None) as server:
        # Free-form objects have no strict form, so nobody has promised to keep to this one.
        agent = Agent("a", "x", model=server.bundle(api="chat"), output_type=dict[str, int])
        context = await agent.run_async("Go")
    assert context["result"].final_output == {"a": 1}
    assert all("response_format" in request.body for request in server.requests)


async def test_what_was_tried_is_recorded_also_when_the_run_is_cancelled(traces: Any) -> None:
    asked: list[Any] = []
    again = asyncio.Event()

    def hear(event: Any) -> None:
        if isinstance(event, ModelCallStarted):
            asked.append(event)
            if len(asked) == 2:
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
