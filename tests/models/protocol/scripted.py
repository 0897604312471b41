"""Scripted providers, and strategies for protocol values with unknown fields."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import attrs
from hypothesis import strategies as st

from kantan_agents import ContentSegment, ProviderResponse
from kantan_agents.models.protocol import Message, ProviderContext, ToolSpec
from kantan_agents.testing.strategies import json_values
from tests.models.protocol.strategies import IDS, any_segments

TEXTS = st.text(max_size=8, alphabet=st.characters(codec="utf-8"))
UNKNOWN = st.dictionaries(st.sampled_from(["mood", "x-y", "日本"]), json_values(max_leaves=3), max_size=2)


def segments() -> st.SearchStrategy[ContentSegment]:
    return st.builds(lambda segment, extra: attrs.evolve(segment, extra=extra), any_segments(), UNKNOWN)


def responses() -> st.SearchStrategy[ProviderResponse]:
    return st.builds(
        lambda parts, metadata, extra: ProviderResponse(parts, metadata, extra=extra),
        st.lists(segments(), max_size=5),
        json_values(max_leaves=3),
        UNKNOWN,
    )


def message_segments() -> st.SearchStrategy[ContentSegment]:
    return segments().filter(lambda segment: segment.tool_call is None)


def messages() -> st.SearchStrategy[Message]:
    listed = st.lists(message_segments(), max_size=3)
    return (
        st.builds(lambda parts: Message("assistant", parts), st.lists(segments(), max_size=4))
        | st.builds(Message, st.sampled_from(["user", "system"]), listed)
        | st.builds(
            lambda parts, call_id, name: Message("tool", parts, tool_call_id=call_id, tool_name=name),
            listed,
            IDS,
            st.none() | TEXTS,
        )
    )


def tools() -> st.SearchStrategy[ToolSpec]:
    return st.builds(
        ToolSpec, st.text(min_size=1, max_size=5), TEXTS, st.dictionaries(TEXTS, json_values(max_leaves=2))
    )


def text(said: str) -> ContentSegment:
    return ContentSegment.of_text(said)


def call(name: str, args: Any = None, id: str = "") -> ContentSegment:
    return ContentSegment.of_call(name, args, id)


class Scripted:
    """A provider that returns scripted responses and records prompts and contexts."""

    def __init__(self, *answers: Any, name: str = "scripted") -> None:
        self.name = name
        self.answers = list(answers)
        self.prompts: list[str] = []
        self.contexts: list[ProviderContext] = []

    async def generate(self, prompt: str, context: ProviderContext) -> ProviderResponse:
        self.prompts.append(prompt)
        self.contexts.append(context)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, (list, ContentSegment)):
            return ProviderResponse(answer if isinstance(answer, list) else [answer])
        return answer


class Streaming(Scripted):
    """A scripted provider that streams text letter by letter."""

    closed = 0

    async def stream(
        self, prompt: str, context: ProviderContext
    ) -> AsyncIterator[ContentSegment | ProviderResponse]:
        try:
            response = await self.generate(prompt, context)
            for segment in response.segments:
                if segment.type == "text":
                    for letter in segment.text or "":
                        yield text(letter)
                else:
                    yield segment
            yield ProviderResponse([], response.metadata)
        finally:
            self.closed += 1
