"""The items of an answer are encoded in a short way, with the same result as by pydantic."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseFunctionWebSearch,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_function_web_search import ActionSearch
from openai.types.responses.response_output_text import AnnotationURLCitation, Logprob
from openai.types.responses.response_reasoning_item import Summary
from pydantic import BaseModel

from kantan_agents.agent.bridge.captured import model_call
from kantan_agents.agent.bridge.captured.definitions import encode

texts = st.text()


def message(*parts: Any, **more: Any) -> ResponseOutputMessage:
    return ResponseOutputMessage(
        id="m", content=[*parts], role="assistant", status="completed", type="message", **more
    )


def text(value: str, **more: Any) -> ResponseOutputText:
    return ResponseOutputText(annotations=[], text=value, type="output_text", **more)


def expected(item: Any) -> bytes:
    return encode(model_call._item_data(item))


@given(texts, texts, texts)
def test_texts_calls_and_thoughts_are_the_same(one: str, two: str, three: str) -> None:
    for item in (
        message(text(one), ResponseOutputRefusal(refusal=two, type="refusal")),
        ResponseFunctionToolCall(arguments=one, call_id=two, name=three, type="function_call"),
        ResponseReasoningItem(id=one, summary=[Summary(text=two, type="summary_text")], type="reasoning"),
    ):
        assert model_call._packed_item(item) == expected(item)


@pytest.mark.parametrize(
    "item",
    [
        message(text("Sources", logprobs=[Logprob(token="S", bytes=[83], logprob=-0.5, top_logprobs=[])])),
        message(
            ResponseOutputText(
                annotations=[
                    AnnotationURLCitation(
                        end_index=4, start_index=0, title="T", type="url_citation", url="https://a.example"
                    )
                ],
                text="See T",
                type="output_text",
            )
        ),
        ResponseFunctionWebSearch(
            id="w",
            action=ActionSearch(type="search", query="weather", queries=["weather"]),
            status="completed",
            type="web_search_call",
        ),
        message(text("half a pair: \ud83d")),
        message(text("fine"), provider_data={"signature": "abc"}),
        message(text("fine", unknown_field=1)),
        ResponseFunctionToolCall.model_construct(arguments="{}", name=None, call_id=1, type="function_call"),
        {"type": "message", "role": "assistant", "content": "a dict"},
    ],
    ids=[
        "logprobs",
        "citation",
        "search",
        "surrogate",
        "provider data",
        "unknown field",
        "unchecked",
        "dict",
    ],
)
def test_every_kind_of_item_is_the_same(item: Any) -> None:
    assert model_call._packed_item(item) == expected(item)


def test_a_model_of_another_library_is_encoded_by_itself() -> None:
    class Own(BaseModel):
        text: str

    assert json.loads(model_call._packed_item(Own(text="a"))) == {"text": "a"}
