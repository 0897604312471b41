"""What one run leaves for the next: the conversation, the state of the provider, and the remembered forms."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from agents import Model, ModelProvider, OpenAIChatCompletionsModel, RunConfig, Runner, SQLiteSession
from openai.types.responses import ResponseReasoningItem
from pydantic import BaseModel, RootModel

from kantan_agents import Agent, StatusJudge
from kantan_agents.errors import InvalidOptionError, StructuredOutputError
from kantan_agents.middleware import Fallback
from kantan_agents.models.structured.requests.final_tool import items_without_final_calls
from kantan_agents.testing import (
    OfflineServer,
    RecordedRequest,
    Reply,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)
from tests.models.structured.invoices import DATA, TEXT, invoice_agent
from tests.models.structured.test_output_modes import look, mode_of

UNFIT = json.dumps({"number": "A-1"})


def refusing_wrong_ids(request: RecordedRequest) -> Any:
    looked = "found x" in json.dumps(request.body)
    if request.body.get("tools") and not looked and len(request.body["tools"]) > 1:
        return [
            ScriptedToolCall("look", {"word": "x"}),
            ScriptedToolCall("final_answer", {"number": "early", "items": []}),
        ]
    return ScriptedToolCall("final_answer", DATA)


@pytest.mark.parametrize("tools", [[], [look]], ids=["alone", "beside tools"])
async def test_an_answer_by_the_final_tool_can_be_sent_back_to_openai(tools: list[Any]) -> None:
    session = SQLiteSession("s")
    with OfflineServer(refusing_wrong_ids, profile="openai") as server:
        agent = invoice_agent(server.bundle(), output_mode="tool", tools=tools)
        first = await agent.run_async("Read it", session=session)
        await agent.run_async("And this", session=session)
        await agent.run_async([*first["result"].to_input_list(), {"role": "user", "content": "again"}])
    session.close()


async def test_reasoning_that_only_led_to_the_final_call_is_dropped() -> None:
    def thought(number: int) -> Any:
        return ResponseReasoningItem(id=f"rs_{number}", summary=[], type="reasoning")

    other, final = (function_call(name, {}, call_id=name) for name in ("other", "final_answer"))
    kept = items_without_final_calls([thought(1), other, thought(2), final], "final_answer")
    assert [item.type for item in kept] == ["reasoning", "function_call", "message"]
    assert [i.type for i in items_without_final_calls([thought(1), final], "final_answer")] == ["message"]


class Loose(BaseModel):
    number: str


async def test_the_failure_of_one_run_does_not_affect_the_next() -> None:
    def reply(request: RecordedRequest) -> Any:
        return UNFIT if "found x" in json.dumps(request.body) else ScriptedToolCall("look", {"word": "x"})

    with OfflineServer(reply) as server:
        strict = invoice_agent(server.bundle(), tools=[look], output_mode="native")
        with pytest.raises(StructuredOutputError):
            await strict.run_async("Read it")
        loose = Agent("b", "x", model=server.bundle(), tools=[look], output_type=Loose)
        context = await loose.run_async("Read it")
        assert context["result"].final_output == Loose(number="A-1")
        assert (await Runner.run(loose.sdk_agent, "Read it")).final_output == Loose(number="A-1")


async def test_a_judge_with_tools_reaches_its_last_stage() -> None:
    def reply(request: RecordedRequest) -> Any:
        done = "found x" in json.dumps(request.body)
        return '{"matched_index": 2, "reason": "r"}' if done else ScriptedToolCall("look", {"word": "x"})

    with OfflineServer(reply) as server:
        judge = StatusJudge(["one", "two"], model=server.bundle(), tools=[look])
        verdict = await judge.judge("text")
    assert (verdict.step, verdict.method) == (2, "ai_judge")


@pytest.mark.parametrize("kept", [{"previous_response_id": "resp_1"}, {"conversation_id": "conv_1"}])
async def test_tool_mode_is_not_used_in_conversations_the_provider_stores(kept: dict[str, str]) -> None:
    refused = Reply("Invalid schema for response_format 'Invoice'", status=400)

    def reply(request: RecordedRequest) -> Any:
        return refused if mode_of(request) == "native" else TEXT

    with OfflineServer(reply) as server:
        context = await invoice_agent(server.bundle()).run_async("Read it", **kept)
        assert context["invoice"] == DATA
        assert [mode_of(request) for request in server.requests] == ["native", "prompt"]
        with pytest.raises(InvalidOptionError, match="would never get a result"):
            await invoice_agent(server.bundle(), output_mode="tool").run_async("Read it", **kept)


async def test_another_mode_does_not_repeat_the_request_in_a_stored_conversation() -> None:
    with OfflineServer(["I cannot.", TEXT]) as server:
        await invoice_agent(server.bundle()).run_async("Read it", conversation_id="conv_1")
    (feedback,) = server.requests[1].body["input"]
    assert "no JSON object" in feedback["content"]


async def test_a_fallback_answers_if_the_first_model_refuses_every_form() -> None:
    with (
        OfflineServer([], profile="plain") as first,
        OfflineServer(lambda _request: DATA, profile="openai") as second,
    ):
        spare = Fallback(OpenAIChatCompletionsModel("spare", second.bundle().client))
        agent = invoice_agent(first.bundle(), output_mode="native", middleware=[spare])
        assert (await agent.run_async("Read it"))["invoice"] == DATA


@pytest.mark.parametrize("mode", ["auto", "native"])
async def test_a_too_long_context_raises_the_clients_error(mode: Any) -> None:
    def reply(request: RecordedRequest) -> Any:
        count = 8000 + len(request.body["messages"])
        said = f"maximum context length is 8192 tokens, but you used {count} (300 in the functions)"
        return Reply(said, status=400)

    with OfflineServer(reply) as server, pytest.raises(openai.BadRequestError):
        await invoice_agent(server.bundle(api="chat"), output_mode=mode).run_async("Read it")
    assert len(server.requests) == 1


@pytest.mark.parametrize("slip", ["", "Sorry, try later."])
async def test_one_bad_reply_does_not_change_the_mode_permanently(slip: str) -> None:
    replies = iter([DATA, slip, DATA, DATA, DATA])
    with OfflineServer(lambda _request: next(replies), profile="openai") as server:
        agent = invoice_agent(server.bundle(api="chat"))
        for _ in range(4):
            assert (await agent.run_async("Read it"))["invoice"] == DATA
    modes = [mode_of(request) for request in server.requests]
    assert modes == ["native", "native", "tool", "native", "native"]


async def test_an_empty_first_reply_does_not_demote_the_form() -> None:
    replies = iter(["", DATA, DATA])
    with OfflineServer(lambda _request: next(replies)) as server:
        agent = invoice_agent(server.bundle(api="chat"))
        for _ in range(2):
            await agent.run_async("Read it")
    assert [mode_of(request) for request in server.requests] == ["native", "tool", "native"]


class Custom(ScriptedModel):
    """A model without a visible client that only supports prompt mode."""

    def __init__(self, model: str, modes: list[str]) -> None:
        super().__init__()
        self.model = model
        self.modes = modes

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        native, tools = kwargs.get("output_schema") is not None, kwargs.get("tools")
        self.modes.append("native" if native else "tool" if tools else "prompt")
        self.enqueue([assistant_message("no" if native or tools else TEXT)])
        return await super().get_response(*args, **kwargs)


async def test_a_model_created_for_each_run_is_recognised_by_its_name() -> None:
    modes: list[str] = []

    class Provider(ModelProvider):
        def get_model(self, model_name: str | None) -> Model:
            return Custom("custom/one", modes)

    agent = invoice_agent(None)
    for _ in range(2):
        context = await agent.run_async("Read it", run_config=RunConfig(model_provider=Provider()))
        assert context["invoice"] == DATA
    assert modes == ["native", "tool", "prompt", "prompt"]


async def test_a_clone_with_another_model_keeps_the_mode() -> None:
    with OfflineServer(lambda _request: ScriptedToolCall("final_answer", DATA)) as server:
        agent = invoice_agent(server.bundle("one"), output_mode="tool")
        other = OpenAIChatCompletionsModel("two", server.bundle().client)
        result = await Runner.run(agent.sdk_agent.clone(model=other), "Read it")
    assert result.final_output.number == "A-1"


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
@pytest.mark.parametrize("reply", ["[1, 2]", '{"response": [1, 2]}', "```json\n[1, 2]\n```"])
async def test_a_root_model_of_a_list_works_in_every_mode(mode: Any, reply: str) -> None:
    with OfflineServer(lambda _request: reply) as server:
        agent = Agent("a", "x", model=server.bundle(), output_type=RootModel[list[int]], output_mode=mode)
        context = await agent.run_async("Go")
    assert context["result"].final_output.root == [1, 2]


async def test_the_answer_may_come_after_many_other_objects() -> None:
    many = " ".join(json.dumps({"step": number}) for number in range(100))
    with OfflineServer(lambda _request: f"{many} {TEXT}") as server:
        assert (await invoice_agent(server.bundle(api="chat")).run_async("Read it"))["invoice"] == DATA


async def test_a_lone_surrogate_can_be_judged() -> None:
    with OfflineServer(['{"step": 1, "reason": "r"}']) as server:
        verdict = await StatusJudge(["one"], model=server.bundle()).judge("\ud800")
    assert verdict.step == 1
