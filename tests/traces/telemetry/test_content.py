"""Which texts are sent: none by default, masked ones on request, and none of private runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import agents
import pytest
from agents import function_tool

from kantan_agents import Agent, OtelExporter, Prompt, redact_texts
from kantan_agents.middleware import Redact
from kantan_agents.testing import ScriptedToolCall
from kantan_agents.traces.telemetry import conventions as names
from tests.traces.telemetry.ending import FLUSH
from tests.traces.telemetry.receiver import Receiver

Make = Callable[..., Agent]
Export = Callable[..., OtelExporter]
SECRET = "sk-proj-Abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"


@function_tool
def find_order(customer: str) -> str:
    """Find an order."""
    return f"Order of {customer}: blue shoes."


async def ask(
    agent: Agent, exporter: OtelExporter, input: Any = "Ann asks for her shoes", **options: Any
) -> None:
    await agent.run_async(input, **options)
    assert exporter.force_flush(FLUSH)


def texts(receiver: Receiver) -> str:
    return repr(receiver.spans)


def lookup(support: Make, **options: Any) -> Agent:
    return support(
        ScriptedToolCall("find_order", {"customer": "Ann"}),
        "Ann, your blue shoes are on their way.",
        tools=[find_order],
        instructions=Prompt("support", "1", "Help with shoes."),
        **options,
    )


async def test_no_text_is_sent_by_default(receiver: Receiver, export: Export, support: Make) -> None:
    await ask(lookup(support), export())
    assert not any(text in texts(receiver) for text in ("Ann", "shoes"))


@pytest.mark.parametrize("value", ["true", "SPAN_ONLY", "span_and_event", "1"])
async def test_the_switch_of_the_conventions_turns_content_on(
    receiver: Receiver, export: Export, support: Make, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(names.CONTENT_VARIABLE, value)
    exporter = export()
    assert exporter.content
    await ask(lookup(support), exporter)
    assert "blue shoes" in texts(receiver)


@pytest.mark.parametrize("value", ["", "false", "NO_CONTENT", "event_only", "of course"])
def test_other_values_of_the_switch_leave_it_off(
    export: Export, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, value: str
) -> None:
    monkeypatch.setenv(names.CONTENT_VARIABLE, value)
    assert not export().content
    assert ("is unknown" in caplog.text) is (value == "of course")


async def test_the_argument_wins_over_the_switch(
    receiver: Receiver, export: Export, support: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(names.CONTENT_VARIABLE, "true")
    await ask(lookup(support), export(content=False))
    assert "shoes" not in texts(receiver)


async def test_content_has_the_shape_of_the_conventions(
    receiver: Receiver, export: Export, support: Make
) -> None:
    await ask(lookup(support), export(content=True))
    first, second = receiver.named("chat offline-model")
    asked = {"role": "user", "parts": [{"type": "text", "content": "Ann asks for her shoes"}]}
    call, result = (
        first.json(names.OUTPUT_MESSAGES)[0]["parts"][0],
        second.json(names.INPUT_MESSAGES)[2]["parts"][0],
    )
    assert first.json(names.INPUT_MESSAGES) == [asked]
    assert first.json(names.SYSTEM_INSTRUCTIONS) == [{"type": "text", "content": "Help with shoes."}]
    assert (call["type"], call["name"], call["arguments"]) == ("tool_call", "find_order", {"customer": "Ann"})
    assert (result["type"], result["id"]) == ("tool_call_response", call["id"])
    answer = [{"type": "text", "content": "Ann, your blue shoes are on their way."}]
    said = {"role": "assistant", "parts": answer, "finish_reason": "stop"}
    assert first.json(names.OUTPUT_MESSAGES)[0]["finish_reason"] == "tool_call"
    assert second.json(names.OUTPUT_MESSAGES) == [said]
    tool, run = receiver.one("execute_tool find_order"), receiver.one("invoke_agent support")
    assert tool.json(names.TOOL_ARGUMENTS) == {"customer": "Ann"}
    assert tool.json(names.TOOL_RESULT) == "Order of Ann: blue shoes."
    assert run.json(names.INPUT_MESSAGES) == [asked]
    assert run.json(names.OUTPUT_MESSAGES) == [said]


async def test_chat_completions_send_the_same_messages(
    receiver: Receiver, export: Export, offline: Callable[..., Any]
) -> None:
    from kantan_agents.testing import OfflineServer

    exporter = export(content=True)
    with OfflineServer([ScriptedToolCall("find_order", {"customer": "Ann"}), "On their way."]) as server:
        agent = Agent("support", "Help.", model=server.bundle(api="chat"), tools=[find_order])
        await ask(agent, exporter)
    first, second = receiver.named("chat offline-model")
    assert first.json(names.SYSTEM_INSTRUCTIONS) == [{"type": "text", "content": "Help."}]
    assert first.json(names.INPUT_MESSAGES)[0]["role"] == "user"
    (called,) = first.json(names.OUTPUT_MESSAGES)
    assert (called["parts"][-1]["name"], called["finish_reason"]) == ("find_order", "tool_call")
    assert second.json(names.INPUT_MESSAGES)[-1]["parts"][0]["type"] == "tool_call_response"


async def test_secrets_are_masked_in_content_metadata_and_names(
    receiver: Receiver, export: Export, support: Make
) -> None:
    agent = support("Ok.", metadata=lambda _context: {"note": f"key {SECRET}", "api_key": "hunter2hunter2"})
    await ask(agent, export(content=True), f"My key is {SECRET}")
    assert SECRET not in texts(receiver)
    assert "hunter2" not in texts(receiver)
    assert "My key is" in texts(receiver)


async def test_private_runs_send_no_content(receiver: Receiver, export: Export, support: Make) -> None:
    config = agents.RunConfig(trace_include_sensitive_data=False)
    await ask(lookup(support), export(content=True), run_config=config)
    assert not any(text in texts(receiver) for text in ("Ann", "shoes"))
    run = receiver.one("invoke_agent support")
    assert run.attributes[names.INPUT_TOKENS] == 20, "tokens are no content"
    assert receiver.named("chat offline-model")


async def test_redact_changes_everything_that_is_sent(
    receiver: Receiver, export: Export, support: Make
) -> None:
    redact = redact_texts(lambda text: text.replace("Ann", "X").replace("find_order", "tool"))
    await ask(lookup(support, metadata=lambda _context: {"user": "Ann"}), export(content=True, redact=redact))
    assert "Ann" not in texts(receiver)
    assert "X, your blue shoes" in texts(receiver)
    assert receiver.one("execute_tool tool").json(names.TOOL_ARGUMENTS) == {"customer": "X"}
    assert receiver.one("invoke_agent support").attributes["kantan_agents.metadata.user"] == "X"
    assert len({span.trace_id for span in receiver.spans}) == 1


async def test_a_redact_that_withholds_or_fails_leaves_the_shape(
    receiver: Receiver, export: Export, support: Make, caplog: pytest.LogCaptureFixture
) -> None:
    def redact(record: dict[str, Any]) -> dict[str, Any] | None:
        if record["object"] == "trace":
            return None
        raise OSError("no rules")

    await ask(lookup(support, metadata=lambda _context: {"user": "Ann"}), export(content=True, redact=redact))
    assert len(receiver.spans) == 4
    assert not any(text in texts(receiver) for text in ("Ann", "shoes"))
    assert [record.code for record in caplog.records if hasattr(record, "code")] == ["E64"]


@pytest.mark.parametrize("content", [True, False])
async def test_the_redact_middleware_holds_for_what_is_sent(
    receiver: Receiver, export: Export, support: Make, content: bool
) -> None:
    agent = lookup(support, middleware=[Redact({"name": "Ann"})])
    await ask(agent, export(content=content))
    assert "Ann" not in texts(receiver)
    assert ("[name], your blue shoes" in texts(receiver)) is content
    chats = receiver.named("chat offline-model")
    assert len(chats) == 2, "the middleware's span and that of the model are one"
    assert [chat.attributes[names.INPUT_TOKENS] for chat in chats] == [10, 10]
    assert {chat.attributes[names.PROMPT_VERSION] for chat in chats} == {"1"}


async def test_error_messages_are_content(receiver: Receiver, export: Export, support: Make) -> None:
    @function_tool(failure_error_function=None)
    def broken() -> str:
        """Fail."""
        raise OSError("disk of Ann is full")

    exporter = export(content=True)
    with pytest.raises(Exception, match="disk"):
        await support(ScriptedToolCall("broken", {}), tools=[broken]).run_async("Go")
    assert exporter.force_flush(FLUSH)
    assert "disk of Ann" in receiver.one("execute_tool broken").problem


async def test_texts_that_are_not_utf_8_do_not_lose_the_batch(
    receiver: Receiver, export: Export, support: Make
) -> None:
    agent = support("Ok.", metadata=lambda _context: {"half": "a\ud83d", "big": 2**70, "nul": "\0"})
    await ask(agent, export(content=True))
    said = receiver.one("invoke_agent support").attributes
    assert said["kantan_agents.metadata.half"] == "a\ufffd"
    assert said["kantan_agents.metadata.big"] == str(2**70)


async def test_images_are_not_sent(receiver: Receiver, export: Export, support: Make) -> None:
    image = "data:image/png;base64," + "A" * 5_000
    parts = [
        {"type": "input_text", "text": "See"},
        {"type": "input_image", "image_url": image, "detail": "auto"},
    ]
    await ask(support("Ok."), export(content=True), [{"role": "user", "content": parts}])
    assert "A" * 1_000 not in texts(receiver)


@function_tool(needs_approval=True)
def refund(number: int) -> str:
    """Refund an order."""
    return f"refunded {number}"


async def test_a_call_that_waits_for_a_person_has_no_result(
    receiver: Receiver, export: Export, support: Make
) -> None:
    agent = support(ScriptedToolCall("refund", {"number": 7}), tools=[refund])
    await ask(agent, export(content=True))
    span = receiver.one("execute_tool refund")
    assert names.TOOL_ARGUMENTS in span.attributes
    assert names.TOOL_RESULT not in span.attributes
