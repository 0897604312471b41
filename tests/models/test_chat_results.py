"""Images and files that tools return reach a model of the chat completions API."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import pytest
from agents import (
    OpenAIChatCompletionsModel,
    Runner,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    function_tool,
)
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent
from kantan_agents.models.chat_results import results_as_text
from kantan_agents.testing import OfflineServer

URL = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="
IMAGE = {"type": "image_url", "image_url": {"url": URL, "detail": "auto"}}


@function_tool
def look() -> ToolOutputImage:
    """Look at the screen."""
    return ToolOutputImage(image_url=URL)


@function_tool
def report() -> list[Any]:
    """Return the report of May."""
    file = ToolOutputFileContent(file_data=PDF, filename="may.pdf")
    return [ToolOutputText(text="Report of May"), ToolOutputImage(image_url=URL, detail="low"), file]


class Mine(OpenAIChatCompletionsModel):
    """A model class of an application."""


MODELS: dict[str, Any] = {
    "a model of this library": lambda server: server.bundle(api="chat"),
    "a model of the SDK": lambda server: OpenAIChatCompletionsModel("m", server.bundle(api="chat").client),
    "a model of the application": lambda server: Mine("m", server.bundle(api="chat").client),
}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("how", ["run", "stream", "Runner"])
async def test_images_and_files_are_sent_after_the_results(make: Any, how: str) -> None:
    calls = [{"tool": "report", "arguments": {}}, {"tool": "look", "arguments": {}}]
    with OfflineServer([calls, "Seen."]) as server:
        agent = Agent("a", "x", model=make(server), tools=[look, report], tool_providers=None)
        if how == "run":
            await agent.run_async("Go")
        elif how == "stream":
            async with agent.stream("Go") as stream:
                _ = [event async for event in stream]
        else:
            await Runner.run(agent.sdk_agent, "Go")
    *_, first, second, shown = server.requests[-1].body["messages"]
    assert [first["role"], second["role"], shown["role"]] == ["tool", "tool", "user"]
    assert first["content"] == [
        text("Report of May"),
        text("[image 1: in the message after the results]"),
        text("[file 2: in the message after the results]"),
    ]
    assert second["content"] == [text("[image 3: in the message after the results]")]
    assert shown["content"] == [
        text("[image 1, from the result of a tool]"),
        {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
        text("[file 2, from the result of a tool]"),
        {"type": "file", "file": {"file_data": PDF, "filename": "may.pdf"}},
        text("[image 3, from the result of a tool]"),
        IMAGE,
    ]


async def test_the_responses_api_gets_them_in_the_result() -> None:
    with OfflineServer([{"tool": "look", "arguments": {}}, "Seen."]) as server:
        await Agent("a", "x", model=server.bundle(), tools=[look]).run_async("Go")
    (part,) = server.requests[-1].body["input"][-1]["output"]
    assert part["image_url"] == URL


def result(number: int, *parts: dict[str, Any] | str) -> dict[str, Any]:
    output: Any = list(parts) if parts and isinstance(parts[0], dict) else "done"
    return {"type": "function_call_output", "call_id": f"c{number}", "output": output}


PARTS = st.sampled_from(
    [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": URL}, {"type": "input_file"}]
)
ITEMS = st.one_of(
    st.builds(lambda parts: result(1, *parts), st.lists(PARTS, max_size=3)),
    st.sampled_from([{"role": "user", "content": "b"}, {"type": "function_call", "call_id": "c1"}]),
)


@given(st.lists(ITEMS, max_size=8))
def test_results_become_text_and_nothing_is_lost(items: list[dict[str, Any]]) -> None:
    before = copy.deepcopy(items)
    sent = results_as_text(items)
    assert items == before

    def media(given: list[dict[str, Any]]) -> list[Any]:
        parts = [part for item in given for part in item.get("output") or item.get("content") or ()]
        return [part for part in parts if isinstance(part, dict) and part["type"] != "input_text"]

    assert media(sent) == media(items)
    assert media([item for item in sent if "output" in item]) == []
    assert [item.get("call_id") for item in sent if item.get("role") is None] == [
        item.get("call_id") for item in items if item.get("role") is None
    ]
    # A result still follows its call or another result.
    for one, after in pairwise(sent):
        assert "output" not in after or one in items or "output" in one
