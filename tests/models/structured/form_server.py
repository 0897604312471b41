"""Servers that speak Anthropic's and Google's APIs and refuse some forms of a structured output."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Literal

from kantan_agents import AnthropicProvider, GeminiProvider
from tests.models.protocol.wire_server import Body, WireServer, recorded

Sent = Literal["native", "forced tool", "tool", "prompt"]
Api = Literal["anthropic", "google"]
Refuse = Callable[[Sent], tuple[int, str] | None]


class FormServer(WireServer):
    """Refuses the forms for which ``refuse`` returns a status and a message; answers the others with data.

    ``forms`` lists the forms of the requests, in order.
    """

    def __init__(self, api: Api, data: Any, refuse: Refuse) -> None:
        super().__init__([])
        self._api = api
        self._data = data
        self.refuse = refuse
        self.forms: list[Sent] = []
        self._answers = self._each_answer()

    def provider(self) -> AnthropicProvider | GeminiProvider:
        if self._api == "anthropic":
            return AnthropicProvider("claude-sonnet-4-5", api_key="not-a-real-key", base_url=self.url)
        return GeminiProvider("gemini-3-flash", api_key="not-a-real-key", base_url=self.url)

    def _each_answer(self) -> Iterator[Body]:
        while True:
            path, sent, _headers = self.requests[-1]
            form = _form_of(self._api, sent)
            self.forms.append(form)
            refusal = self.refuse(form)
            if refusal is not None:
                yield _error(self._api, *refusal)
            elif "stream" in path or sent.get("stream"):
                yield _streamed(self._api, form, self._data)
            else:
                yield Body(_answer(self._api, form, self._data))


def _form_of(api: Api, body: dict[str, Any]) -> Sent:
    if api == "anthropic":
        native = "format" in body.get("output_config", {})
        tools = [tool["name"] for tool in body.get("tools", ())]
        forced = body.get("tool_choice", {}).get("type") == "any"
    else:
        native = any("chema" in name for name in body.get("generationConfig", {}))
        tools = [one["name"] for tool in body.get("tools", ()) for one in tool["functionDeclarations"]]
        forced = body.get("toolConfig", {}).get("functionCallingConfig", {}).get("mode") == "ANY"
    if native:
        return "native"
    if not any(name.startswith("final_answer") for name in tools):
        return "prompt"
    return "forced tool" if forced else "tool"


def _error(api: Api, status: int, message: str) -> Body:
    if api == "anthropic":
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
        return Body(error, status=status)
    return Body({"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}, status=status)


def _part(api: Api, form: Sent, data: Any) -> dict[str, Any]:
    if "tool" in form:
        if api == "anthropic":
            return {"type": "tool_use", "id": "toolu_1", "name": "final_answer", "input": data}
        return {"functionCall": {"name": "final_answer", "args": data}}
    text = json.dumps(data)
    return {"type": "text", "text": text} if api == "anthropic" else {"text": text}


def _answer(api: Api, form: Sent, data: Any) -> dict[str, Any]:
    part = _part(api, form, data)
    if api == "anthropic":
        return {**recorded("anthropic_citations"), "content": [part]}
    content = {"role": "model", "parts": [part]}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {**recorded("gemini_image"), "candidates": [candidate]}


def _streamed(api: Api, form: Sent, data: Any) -> Body:
    whole = _answer(api, form, data)
    if api == "google":
        return Body(events=[whole])
    (part,) = whole["content"]
    empty, delta = {**part, "text": ""}, {"type": "text_delta", "text": part.get("text")}
    if part["type"] == "tool_use":
        empty = {**part, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(data)}
    return Body(
        events=[
            {"type": "message_start", "message": {**whole, "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]
    )
