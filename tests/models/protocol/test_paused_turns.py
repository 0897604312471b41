"""A turn that Claude pauses (``pause_turn``) is continued until it has an end."""

from __future__ import annotations

from typing import Any

import pytest
from agents import ModelSettings, function_tool

from kantan_agents import Agent, to_provider_response
from kantan_agents.core.events import ModelCallFinished, TextDelta
from kantan_agents.errors import ProviderRequestError
from kantan_agents.models.protocol.http.anthropic_answers import MAX_PAUSES
from tests.models.protocol.test_anthropic_gemini_agents import claude, stream_of
from tests.models.protocol.wire_server import WireServer

EITHER = pytest.mark.parametrize("is_streamed", [False, True])


@function_tool
def country_of(city: str) -> str:
    """Return the country of a city."""
    return f"Japan, {city}"


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "wire"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"title": "Wire"}]}
THOUGHT = {"type": "thinking", "thinking": "I search.", "signature": "s1"}
WEB = ModelSettings(extra_body={"tools": [{"type": "web_search_20250305", "name": "web_search"}]})


def body(content: list[Any], reason: str, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5, "server_tool_use": {"web_search_requests": 1}}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": content,
        "stop_reason": reason,
        "usage": usage,
        **more,
    }


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


PAUSED = body([THOUGHT, text("I look. "), SEARCH], "pause_turn", container={"id": "container_1"})
AGAIN = body([FOUND, text("More. ")], "pause_turn")
ENDED = body([text("Found it.")], "end_turn")


async def run(
    answers: list[Any], *, is_streamed: bool, turns: int = 1, **options: Any
) -> tuple[Any, list[dict[str, Any]], list[Any]]:
    """Return the context of the last run, the bodies of all requests, and the events."""
    events: list[Any] = []
    sent = [stream_of(claude, answer) for answer in answers] if is_streamed else answers
    with WireServer(sent) as server:
        async with claude(server.url) as provider:
            agent = Agent("a", "Search.", model=provider, **{"model_settings": WEB, **options})
            items: list[Any] = [{"role": "user", "content": "Find it."}]
            for _ in range(turns):
                if is_streamed:
                    async with agent.stream(items, {}) as stream:
                        events += [event async for event in stream]
                    context: Any = stream.context
                else:
                    context = await agent.run_async(items, {})
                items = [*context["result"].to_input_list(), {"role": "user", "content": "Thanks."}]
    return context, [request[1] for request in server.requests], events


@EITHER
async def test_a_paused_turn_is_continued_with_what_the_model_has_said(is_streamed: bool) -> None:
    context, requests, events = await run([PAUSED, AGAIN, ENDED], is_streamed=is_streamed)
    assert context["result"].final_output == "I look. More. Found it."
    question = {"role": "user", "content": "Find it."}
    assert requests[0]["messages"] == [question]
    assert requests[1]["messages"] == [question, {"role": "assistant", "content": PAUSED["content"]}]
    whole = [*PAUSED["content"], *AGAIN["content"]]
    assert requests[2]["messages"] == [question, {"role": "assistant", "content": whole}]
    for request in requests:
        assert request["tools"] == requests[0]["tools"]
        assert request["system"] == "Search."
    if is_streamed:
        said = [event.text for event in events if isinstance(event, TextDelta)]
        assert said == ["I look. ", "More. ", "Found it."]
        assert len([event for event in events if isinstance(event, ModelCallFinished)]) == 1


@EITHER
async def test_the_requests_and_tokens_of_a_paused_turn_are_counted(is_streamed: bool) -> None:
    context, _, _ = await run([PAUSED, AGAIN, ENDED], is_streamed=is_streamed)
    usage = context["result"].context_wrapper.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (30, 15, 45)
    # The SDK counts one request for every streamed model call.
    assert to_provider_response(context).metadata["usage"]["requests"] == (1 if is_streamed else 3)


@EITHER
async def test_the_blocks_of_a_paused_turn_are_sent_back_in_the_next_one(is_streamed: bool) -> None:
    answers = [PAUSED, AGAIN, ENDED, body([text("Bye.")], "end_turn")]
    _, requests, _ = await run(answers, is_streamed=is_streamed, turns=2)
    sent_back = requests[3]["messages"][1]["content"]
    # A stream joins the texts of an answer, so there the other blocks come before the text.
    whole = [THOUGHT, SEARCH, FOUND]
    assert [block for block in sent_back if block["type"] != "text"] == whole
    assert "".join(block.get("text", "") for block in sent_back) == "I look. More. Found it."


@EITHER
@pytest.mark.parametrize("blank", ["", "\n\n"])
async def test_a_blank_text_of_a_paused_turn_is_not_sent_back(is_streamed: bool, blank: str) -> None:
    paused = body([THOUGHT, text(blank), SEARCH], "pause_turn")
    context, requests, _ = await run(
        [paused, body([FOUND, text("Yes.")], "end_turn")], is_streamed=is_streamed
    )
    assert requests[1]["messages"][1] == {"role": "assistant", "content": [THOUGHT, SEARCH]}
    assert context["result"].final_output == f"{blank}Yes."


@EITHER
async def test_a_call_of_an_own_tool_in_a_paused_turn_is_run_before_the_turn_goes_on(
    is_streamed: bool,
) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "country_of", "input": {"city": "Kobe"}}
    answers = [body([text("I look."), SEARCH, call], "pause_turn"), body([FOUND, text("Japan.")], "end_turn")]
    own: dict[str, Any] = {"tools": [country_of], "model_settings": None}
    context, requests, _ = await run(answers, is_streamed=is_streamed, **own)
    assert context["result"].final_output == "Japan."
    _, said, results = requests[1]["messages"]
    assert call in said["content"]
    assert [block["tool_use_id"] for block in results["content"]] == ["toolu_1"]
    assert len(requests) == 2


@EITHER
async def test_the_container_of_a_paused_turn_is_used_again(is_streamed: bool) -> None:
    _, requests, _ = await run([PAUSED, ENDED], is_streamed=is_streamed)
    assert "container" not in requests[0]
    assert requests[1]["container"] == "container_1"


@EITHER
async def test_a_turn_that_pauses_without_end_is_e53(is_streamed: bool) -> None:
    with pytest.raises(ProviderRequestError, match=rf"paused {MAX_PAUSES + 1} times and gave no answer"):
        await run([PAUSED, *([AGAIN] * MAX_PAUSES)], is_streamed=is_streamed)


@EITHER
@pytest.mark.parametrize("content", [[], [text("\n")]], ids=["nothing", "a blank text"])
async def test_a_pause_without_content_is_e53(is_streamed: bool, content: list[Any]) -> None:
    with pytest.raises(ProviderRequestError, match="paused 1 times and gave no answer"):
        await run([body(content, "pause_turn")], is_streamed=is_streamed)
