"""``AnthropicProvider``: Claude models over Anthropic's Messages API."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final, get_args

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.models.protocol.http.anthropic_answers import AnthropicStream, PausedTurn
from kantan_agents.models.protocol.http.anthropic_cache import CacheTtl, with_breakpoints
from kantan_agents.models.protocol.http.api import Api, off_loop
from kantan_agents.models.protocol.http.conversation import check_has_input
from kantan_agents.models.protocol.http.options import (
    api_key_from,
    checked_bool,
    checked_model,
    checked_timeout,
    read_tool_choice,
    stop_sequences,
)
from kantan_agents.models.protocol.http.provider import HttpProvider, HttpRequest
from kantan_agents.models.protocol.pieces import Piece, Streamed
from kantan_agents.models.protocol.provider import Message, ProviderContext
from kantan_agents.models.protocol.translate.anthropic import (
    messages_to_anthropic,
    output_schema_to_anthropic,
    response_from_anthropic,
    tools_to_anthropic,
)
from kantan_agents.models.protocol.translate.anthropic.tools import FORMAT
from kantan_agents.models.protocol.types import ContentSegment, ProviderResponse
from kantan_agents.models.protocol.unreadable_replies import OnUnreadable
from kantan_agents.support.arguments import checked_int
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.protocol")
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
    """Claude models over Anthropic's Messages API (spec protocol 4).

    Use it as ``Agent(model=AnthropicProvider("claude-..."))``. Supported ``model_settings``: ``temperature``,
    ``top_p``, ``max_tokens``, ``tool_choice``, ``parallel_tool_calls``, ``extra_body``, ``extra_args``
    (including ``stop``) and ``extra_headers``. The API has no counterpart for the others, which are ignored.
    Enable thinking with ``extra_body={"thinking": {...}}``; thinking blocks return to the API in the next
    turn.

    If Claude pauses a turn in which it uses tools that Anthropic runs, the provider sends the content back,
    up to ten times; a turn that still pauses is E53. The answer has the content and the tokens of all
    requests. ``dict`` outputs with free keys and recursive output types are requested with a tool or in the
    prompt.

    Each event loop has its own connections. ``async with provider:`` or ``aclose()`` closes the connections
    of the running loop. A copy of a provider is the same provider, and it cannot be pickled. The key is in
    no error, ``repr`` or trace.

    Args:
        model: Name of the model.
        api_key: The API key; by default the environment variable ``ANTHROPIC_API_KEY``. ``""`` for a server
            that needs no key.
        base_url: URL of the API; by default ``ANTHROPIC_BASE_URL``, or else Anthropic's.
        max_tokens: Maximum tokens of a response if ``model_settings`` set none; the API requires a limit.
        timeout: Seconds to wait for the next bytes of a response; None for no limit.
        on_unreadable: For a response that cannot be parsed: ``"raise"`` raises E51, ``"text"`` returns an
            answer that describes the problem.
        output_schema: Whether structured outputs use the API's ``output_config``. Set it to False for models
            that do not support it: they return the output as a tool call, and so does every model if
            ``output_config`` cannot express the schema (see ``output_schema_to_anthropic``).
        cache: Whether the API caches the tools, the instructions and the conversation, so that the next
            request that starts alike costs less. The first request costs more. Your own ``cache_control`` in
            ``extra_body`` counts toward the API's limit of four; its ``ttl`` must equal ``cache_ttl``.
        cache_ttl: How long it keeps them after their last use: ``"5m"``, or ``"1h"``, which costs more.

    Raises:
        InvalidOptionError: E75, there is no API key, or an argument has an invalid value.
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
        cache: bool = False,
        cache_ttl: CacheTtl = "5m",
    ) -> None:
        name = f"anthropic/{checked_model(model)}"
        key = api_key_from(api_key, "ANTHROPIC_API_KEY")
        url = base_url or os.environ.get("ANTHROPIC_BASE_URL") or _BASE_URL
        headers = {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}
        super().__init__(name, model, Api(name, url, key, headers, checked_timeout(timeout)), on_unreadable)
        self._max_tokens = checked_int("max_tokens", max_tokens, 1)
        self.supports_output_schema = bool(output_schema)
        if cache_ttl not in get_args(CacheTtl):
            reason = f'must be "5m" or "1h", not {cache_ttl!r}'
            raise InvalidOptionError(option="cache_ttl", reason=reason)
        self._cache_ttl: CacheTtl | None = cache_ttl if checked_bool("cache", cache) else None

    @property
    def request_options(self) -> dict[str, Any]:
        """Additions to each request, recorded with each model call."""
        options: dict[str, Any] = {"max_tokens": self._max_tokens}
        return options if self._cache_ttl is None else {**options, "cache_ttl": self._cache_ttl}

    def _path(self, *, is_stream: bool) -> str:  # noqa: ARG002 - one path for both
        return "/v1/messages"

    def _body(
        self, messages: tuple[Message, ...], context: ProviderContext, *, is_stream: bool
    ) -> dict[str, Any]:
        settings = context.settings
        conversation = messages_to_anthropic(messages, context.instructions)
        check_has_input(messages, conversation["messages"], FORMAT)
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": settings.get("max_tokens") or self._max_tokens,
            **conversation,
            **{name: settings[name] for name in ("temperature", "top_p") if name in settings},
            **stop_sequences(settings, "stop_sequences"),
        }
        tools = tools_to_anthropic(context.tools.values())
        if tools:
            body |= {"tools": tools, **_tool_choice(settings, context.tools)}
        if context.output_schema is not None:
            schema = output_schema_to_anthropic(context.output_schema)
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return {**body, "stream": True} if is_stream else body

    def _finished(self, body: dict[str, Any]) -> dict[str, Any]:
        return body if self._cache_ttl is None else with_breakpoints(body, self._cache_ttl)

    async def _call(self, request: HttpRequest) -> ProviderResponse:
        turn = PausedTurn()
        data, size = await self._post(request)
        while turn.add(data):
            data, more = await self._post(self._continued(turn, request))
            size += more
        return await off_loop(lambda: _counted(self._read(turn.joined(data)), turn), size)

    async def _stream(self, request: HttpRequest) -> AsyncGenerator[Streamed, None]:
        turn, stream = PausedTurn(), AnthropicStream()
        async with aclosing(self._feed(stream, request)) as pieces:
            async for piece in pieces:
                yield piece
        while turn.add(stream.answer):
            stream.restart()
            async with aclosing(self._feed(stream, self._continued(turn, request))) as pieces:
                async for piece in pieces:
                    yield piece
        for piece in stream.segments.end():
            yield piece
        response = _counted(stream.response(turn.usage), turn)
        self._check_refusal(response)
        yield response

    def _continued(self, turn: PausedTurn, request: HttpRequest) -> HttpRequest:
        if turn.is_endless:
            raise self._api.request_error(f"the model paused {turn.pauses} times and gave no answer", 200)
        _log.info("turn_continued", provider=self.name, pauses=turn.pauses)
        return attrs.evolve(request, body=turn.continued(request.body))

    def _read(self, data: Any) -> ProviderResponse:
        response = response_from_anthropic(data)
        self._check_refusal(response)
        return response

    async def _feed(
        self, stream: AnthropicStream, request: HttpRequest
    ) -> AsyncGenerator[ContentSegment | Piece, None]:
        async with aclosing(self._events(request)) as events:
            async for event, _size in events:
                if isinstance(event, dict) and event.get("type") == "error":
                    raise self._error(event.get("error"))
                for piece in stream.feed(event):
                    yield piece
                if stream.is_complete:
                    break
        if not stream.is_complete:
            raise self._api.request_error("connection closed before the answer was complete")

    def _error(self, error: Any) -> Exception:
        found = error if isinstance(error, Mapping) else {}
        kind = str(found.get("type"))
        return self._api.request_error(f"{kind}: {found.get('message')}", _STATUSES.get(kind))

    def _check_refusal(self, response: ProviderResponse) -> None:
        if (response.metadata or {}).get("finish_reason") == "refusal":
            raise self._api.request_error("the model refused to answer", 200)


def _counted(response: ProviderResponse, turn: PausedTurn) -> ProviderResponse:
    if not turn.pauses:
        return response
    return attrs.evolve(response, metadata={**(response.metadata or {}), "requests": turn.pauses + 1})


def _tool_choice(settings: Mapping[str, Any], tools: Mapping[str, Any]) -> dict[str, Any]:
    choice = read_tool_choice(settings, tools)
    wire: dict[str, Any] = {}
    if choice is not None:
        wire = {"type": _CHOICES[choice]} if choice in _CHOICES else {"type": "tool", "name": choice}
    if settings.get("parallel_tool_calls") is False and wire.get("type") != "none":
        wire = {"type": "auto", **wire, "disable_parallel_tool_use": True}
    return {"tool_choice": wire} if wire else {}
