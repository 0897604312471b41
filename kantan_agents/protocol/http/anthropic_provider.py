"""``AnthropicProvider``: Claude over Anthropic's own Messages API."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final

from kantan_agents.protocol.http.anthropic_stream import AnthropicStream
from kantan_agents.protocol.http.api import Api
from kantan_agents.protocol.http.provider import HttpProvider, checked_model, checked_timeout, key_of
from kantan_agents.protocol.http.sendable import check_said
from kantan_agents.protocol.http.settings import choice_of, stops_of
from kantan_agents.protocol.pain import OnUnreadable
from kantan_agents.protocol.provider import Message, ProviderContext
from kantan_agents.protocol.translate.anthropic import (
    messages_to_anthropic,
    output_schema_to_anthropic,
    response_from_anthropic,
    tools_to_anthropic,
)
from kantan_agents.protocol.translate.anthropic.tools import FORMAT
from kantan_agents.protocol.types import ContentSegment, ProviderResponse
from kantan_agents.support.numbers import checked_int

_BASE_URL: Final = "https://api.anthropic.com"
_VERSION: Final = "2023-06-01"
_STATUSES: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}


class AnthropicProvider(HttpProvider):
    """Claude, over Anthropic's Messages API: ``Agent(model=AnthropicProvider("claude-..."))``.

    Of ``model_settings`` it knows ``temperature``, ``top_p``, ``max_tokens``, ``tool_choice``,
    ``parallel_tool_calls``, ``extra_body``, ``extra_args`` (``stop`` among them) and ``extra_headers``; the
    API has no place for the others, which are passed over. Thinking is asked for with
    ``extra_body={"thinking": {...}}``, and goes back to the API with the next turn.

    Args:
        model: The model's name.
        api_key: The key; ``ANTHROPIC_API_KEY`` if it is not given, ``""`` for a server that needs none.
        base_url: Where the API is; ``ANTHROPIC_BASE_URL`` or Anthropic itself if it is not given.
        max_tokens: Tokens of an answer at most, where ``model_settings`` do not say; the API wants a number.
        timeout: Seconds to wait for the next bytes of an answer; None for ever.
        on_unreadable: What becomes of an answer that cannot be understood: E51, or a text that says so.
        output_schema: Whether a structured output is asked for with the API's own ``output_config``; False
            for models from before it, which are asked by a tool. So is, in any case, an output of a schema
            that ``output_config`` cannot say (``output_schema_to_anthropic``).

    Raises:
        InvalidOptionError: E75, there is no key, or an argument has a value it cannot have.
    """

    _owner = "anthropic"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_tokens: int = 8192,
        timeout: float | None = 600.0,
        on_unreadable: OnUnreadable = "raise",
        output_schema: bool = True,
    ) -> None:
        name = f"anthropic/{checked_model(model)}"
        key = key_of(api_key, "ANTHROPIC_API_KEY")
        url = base_url or os.environ.get("ANTHROPIC_BASE_URL") or _BASE_URL
        headers = {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}
        super().__init__(name, model, Api(name, url, key, headers, checked_timeout(timeout)), on_unreadable)
        self._max_tokens = checked_int("max_tokens", max_tokens, 1)
        self.supports_output_schema = bool(output_schema)

    def _path(self, *, is_stream: bool) -> str:  # noqa: ARG002 - one path for both
        return "/v1/messages"

    def _body(
        self, messages: tuple[Message, ...], context: ProviderContext, *, is_stream: bool
    ) -> dict[str, Any]:
        settings = context.settings
        conversation = messages_to_anthropic(messages, context.instructions)
        check_said(messages, conversation["messages"], FORMAT)
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": settings.get("max_tokens") or self._max_tokens,
            **conversation,
            **{name: settings[name] for name in ("temperature", "top_p") if name in settings},
            **stops_of(settings, "stop_sequences"),
        }
        tools = tools_to_anthropic(context.tools.values())
        if tools:
            body |= {"tools": tools, **_tool_choice(settings, context.tools)}
        if context.output_schema is not None:
            schema = output_schema_to_anthropic(context.output_schema)
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return {**body, "stream": True} if is_stream else body

    def _read(self, data: Any) -> ProviderResponse:
        response = response_from_anthropic(data)
        self._check_refusal(response)
        return response

    async def _pieces(
        self, events: AsyncIterator[tuple[Any, int]]
    ) -> AsyncGenerator[ContentSegment | ProviderResponse, None]:
        stream = AnthropicStream()
        async for event, _size in events:
            if isinstance(event, dict) and event.get("type") == "error":
                raise self._error(event.get("error"))
            for piece in stream.feed(event):
                yield piece
            if stream.is_complete:
                break
        if not stream.is_complete:
            raise self._api.failed("connection closed before the answer was complete")
        response = stream.response()
        self._check_refusal(response)
        yield response

    def _error(self, error: Any) -> Exception:
        found = error if isinstance(error, Mapping) else {}
        kind = str(found.get("type"))
        return self._api.failed(f"{kind}: {found.get('message')}", _STATUSES.get(kind))

    def _check_refusal(self, response: ProviderResponse) -> None:
        if (response.metadata or {}).get("finish_reason") == "refusal":
            raise self._api.failed("the model has refused to answer", 200)


def _tool_choice(settings: Mapping[str, Any], tools: Mapping[str, Any]) -> dict[str, Any]:
    choice = choice_of(settings, tools)
    wire: dict[str, Any] = {}
    if choice is not None:
        wire = {"type": _CHOICES[choice]} if choice in _CHOICES else {"type": "tool", "name": choice}
    if settings.get("parallel_tool_calls") is False and wire.get("type") != "none":
        wire = {"type": "auto", **wire, "disable_parallel_tool_use": True}
    return {"tool_choice": wire} if wire else {}
