"""Models of each API with scripted answers, over real HTTP, for tests of all shapes of answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from kantan_agents import AnthropicProvider, GeminiProvider
from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall
from tests.models.protocol.wire_server import Body, WireServer

APIS = ("responses", "chat", "anthropic", "gemini")
ARGUMENTS = {"city": "Oslo"}


@attrs.frozen
class Answer:
    """One answer of a model: a text, a call of the tool ``look``, and whether it was cut off."""

    text: str = ""
    calls: bool = False
    is_cut: bool = False


def look(city: str) -> str:
    """Look out of the window."""
    return f"{city}: sun"


@contextmanager
def model_of(api: str, *answers: Answer, is_streamed: bool) -> Iterator[Any]:
    """Yield a model of an API that gives these answers one after the other."""
    if api in ("responses", "chat"):
        replies = [
            Reply(one.text or None, [ScriptedToolCall("look", ARGUMENTS)] * one.calls, is_cut=one.is_cut)
            for one in answers
        ]
        with OfflineServer(replies) as server:
            yield server.bundle(api=api)
        return
    body = {"anthropic": _anthropic, "gemini": _gemini}[api]
    with WireServer([body(one, is_streamed=is_streamed) for one in answers]) as wire:
        kind = AnthropicProvider if api == "anthropic" else GeminiProvider
        yield kind("m", api_key="k", base_url=wire.url)


def _anthropic(answer: Answer, *, is_streamed: bool) -> Body:
    content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": ARGUMENTS}] * answer.calls
    reason = "max_tokens" if answer.is_cut else "tool_use" if answer.calls else "end_turn"
    ending = {"stop_reason": reason, "stop_sequence": None}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
    }
    message |= {**ending, "usage": {"input_tokens": 10, "output_tokens": 5}}
    if not is_streamed:
        return Body(message)
    events: list[Any] = [{"type": "message_start", "message": {**message, "content": []}}]
    for index, block in enumerate(content):
        is_text = block["type"] == "text"
        begun = {**block, "text": ""} if is_text else {**block, "input": {}}
        delta = {"type": "text_delta", "text": block.get("text")}
        if not is_text:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": begun},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    events += [{"type": "message_delta", "delta": ending, "usage": {}}, {"type": "message_stop"}]
    return Body(events=events)


def _gemini(answer: Answer, *, is_streamed: bool) -> Body:
    parts: list[dict[str, Any]] = [{"text": answer.text}] if answer.text else []
    parts += [{"functionCall": {"id": "c1", "name": "look", "args": ARGUMENTS}}] * answer.calls
    candidate = {
        "content": {"role": "model", "parts": parts},
        "finishReason": "MAX_TOKENS" if answer.is_cut else "STOP",
        "index": 0,
    }
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    body = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}
    return Body(events=[body]) if is_streamed else Body(body)
