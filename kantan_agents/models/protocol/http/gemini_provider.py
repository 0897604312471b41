"""``GeminiProvider``: Gemini models over Google's native API."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import quote

import attrs

from kantan_agents.errors import ProviderRequestError
from kantan_agents.models.protocol.http.api import Api, UnreadableAnswerError
from kantan_agents.models.protocol.http.conversation import check_has_input
from kantan_agents.models.protocol.http.error_bodies import retry_after
from kantan_agents.models.protocol.http.gemini_cache import CachedRequest, GeminiCache
from kantan_agents.models.protocol.http.gemini_stream import GeminiStream
from kantan_agents.models.protocol.http.options import (
    api_key_from,
    checked_bool,
    checked_cache_seconds,
    checked_model,
    checked_timeout,
    read_tool_choice,
    stop_sequences,
)
from kantan_agents.models.protocol.http.provider import HttpProvider, HttpRequest
from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.pieces import Streamed
from kantan_agents.models.protocol.provider import Message, ProviderContext
from kantan_agents.models.protocol.translate.gemini import (
    messages_to_gemini,
    response_from_gemini,
    tools_to_gemini,
)
from kantan_agents.models.protocol.translate.gemini.tools import FORMAT, OWNER, SchemaField
from kantan_agents.models.protocol.translate.reader import with_extra
from kantan_agents.models.protocol.types import ContentSegment, ProviderResponse
from kantan_agents.models.protocol.unreadable_replies import OnUnreadable
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.protocol")
_BASE_URL: Final = "https://generativelanguage.googleapis.com"
_NUMBERS: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxOutputTokens",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
}
_CHOICES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_NORMAL_END: Final = (None, "STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED")
_REFUSED: Final = re.compile(r"(IMAGE_)?(SAFETY|RECITATION|PROHIBITED_CONTENT)|LANGUAGE|BLOCKLIST|SPII")
_MALFORMED: Final = re.compile(
    r"MALFORMED_.*|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS|MISSING_THOUGHT_SIGNATURE"
)
_BEFORE_GEMINI_3: Final = re.compile(r"gemini-[12]\b")
# The documented value for calls that the API did not generate.
_SKIP_SIGNATURE: Final = {"thoughtSignature": "skip_thought_signature_validator"}


class GeminiProvider(HttpProvider):
    """Gemini models over Google's native API (spec protocol 4).

    Use it as ``Agent(model=GeminiProvider("gemini-..."))``. Supported ``model_settings``: ``temperature``,
    ``top_p``, ``max_tokens``, ``frequency_penalty``, ``presence_penalty``, ``tool_choice``, ``extra_body``,
    ``extra_args`` (including ``stop``) and ``extra_headers``. The API has no counterpart for the others,
    which are ignored. Configure thinking with ``extra_body={"generationConfig": {"thinkingConfig": {...}}}``.
    Thought signatures return to the API in the next turn, as it requires.

    An answer that the API has blocked (``SAFETY``, ``RECITATION``, ``PROHIBITED_CONTENT``, ``LANGUAGE``,
    ``BLOCKLIST``, ``SPII``) is E53, a malformed one E51. With any other reason, the answer counts and the
    warning ``answer_ended_early`` is logged; without an answer it is E53.

    Each event loop has its own connections. ``async with provider:`` or ``aclose()`` closes the connections
    of the running loop and deletes the stored prefixes. A copy of a provider is the same provider, and it
    cannot be pickled. The key is in no error, ``repr`` or trace.

    Args:
        model: Name of the model, such as ``"gemini-..."``, or with its collection, ``"tunedModels/..."``.
        api_key: The API key; by default the environment variable ``GEMINI_API_KEY`` or ``GOOGLE_API_KEY``.
            ``""`` for a server that needs no key.
        base_url: URL of the API without the version; by default ``GEMINI_BASE_URL``, or else Google's.
        timeout: Seconds to wait for the next bytes of a response; None for no limit.
        on_unreadable: For a response that cannot be parsed: ``"raise"`` raises E51, ``"text"`` returns an
            answer that describes the problem.
        output_schema: Whether structured outputs use the API's ``responseJsonSchema``. By default they do,
            except for models before Gemini 3, which reject it together with tools.
        schema_field: The field that takes the schema of a tool: ``"parametersJsonSchema"``, or
            ``"parameters"`` for a server that does not support the former (see ``tools_to_gemini``).
        cache: Whether the tools and the instructions are stored at the API (``cachedContents``), and not sent
            again with every request. Storing costs a request and a fee for the time. If the API cannot store
            them, requests are sent in full and the warning ``prefix_not_cached`` is logged. With your own
            ``cachedContent``, nothing is stored. The API also caches by itself, without a promise.
        cache_seconds: How long the API keeps them; then they are stored again.

    Raises:
        InvalidOptionError: E75, there is no API key, or an argument has an invalid value.
    """

    _owner = "gemini"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float | None = 600.0,
        on_unreadable: OnUnreadable = "raise",
        output_schema: bool | None = None,
        schema_field: SchemaField = "parametersJsonSchema",
        cache: bool = False,
        cache_seconds: float = 300.0,
    ) -> None:
        name = f"gemini/{checked_model(model)}"
        key = api_key_from(api_key, "GEMINI_API_KEY", "GOOGLE_API_KEY")
        url = base_url or os.environ.get("GEMINI_BASE_URL") or _BASE_URL
        headers = {"x-goog-api-key": key} if key else {}
        super().__init__(name, model, Api(name, url, key, headers, checked_timeout(timeout)), on_unreadable)
        self._is_before_gemini_3 = _BEFORE_GEMINI_3.search(model) is not None
        self.supports_output_schema = (
            not self._is_before_gemini_3 if output_schema is None else bool(output_schema)
        )
        self._schema_field: SchemaField = schema_field
        seconds = checked_cache_seconds(cache_seconds)
        is_cached = checked_bool("cache", cache)
        self._cache_seconds = seconds
        self._cache = GeminiCache(self._api, _with_collection(model), seconds) if is_cached else None

    @property
    def request_options(self) -> dict[str, Any]:
        """Additions to each request, recorded with each model call."""
        return {} if self._cache is None else {"cache_seconds": self._cache_seconds}

    def _path(self, *, is_stream: bool) -> str:
        model = _with_collection(self.model)
        method = "streamGenerateContent?alt=sse" if is_stream else "generateContent"
        return f"/v1beta/{quote(model, safe='/')}:{method}"

    def _body(
        self,
        messages: tuple[Message, ...],
        context: ProviderContext,
        *,
        is_stream: bool,  # noqa: ARG002 - the path shows it
    ) -> dict[str, Any]:
        settings = context.settings
        if not self._is_before_gemini_3:
            messages = tuple(_with_signature(message) for message in messages)
        body: dict[str, Any] = messages_to_gemini(messages, context.instructions)
        check_has_input(messages, body["contents"], FORMAT)
        tools = tools_to_gemini(context.tools.values(), schema_field=self._schema_field)
        if tools:
            body |= {"tools": tools, **_tool_choice(settings, context.tools)}
        config = {wire: settings[name] for name, wire in _NUMBERS.items() if name in settings}
        config |= stop_sequences(settings, "stopSequences")
        if context.output_schema is not None:
            config["responseMimeType"] = "application/json"
            config["responseJsonSchema"] = plain(context.output_schema)
        return {**body, "generationConfig": config} if config else body

    def _read(self, data: Any) -> ProviderResponse:
        response = response_from_gemini(data)
        self._check_finish_reason(response, is_empty=not response.segments)
        return response

    async def _call(self, request: HttpRequest) -> ProviderResponse:
        cached = await self._shortened(request)
        if cached is not None:
            try:
                return await super()._call(attrs.evolve(request, body=cached.body))
            except ProviderRequestError as error:
                if self._cache is None or not self._cache.forget(cached, error):
                    raise
        return await super()._call(request)

    async def _stream(self, request: HttpRequest) -> AsyncGenerator[Streamed, None]:
        cached = await self._shortened(request)
        if cached is not None:
            has_begun = False
            try:
                async with aclosing(self._pieces(attrs.evolve(request, body=cached.body))) as pieces:
                    async for piece in pieces:
                        has_begun = True
                        yield piece
            except ProviderRequestError as error:
                if has_begun or self._cache is None or not self._cache.forget(cached, error):
                    raise
            else:
                return
        async with aclosing(self._pieces(request)) as pieces:
            async for piece in pieces:
                yield piece

    async def _shortened(self, request: HttpRequest) -> CachedRequest | None:
        if self._cache is None:
            return None
        return await self._cache.shorten(request.body, request.headers, request.size)

    async def aclose(self) -> None:
        """Delete the API's cached data, and close the running event loop's connections.

        A later request opens new connections, and caches again.
        """
        if self._cache is not None:
            await self._cache.aclose()
        await super().aclose()

    async def _pieces(self, request: HttpRequest) -> AsyncGenerator[Streamed, None]:
        stream, is_empty = GeminiStream(), True
        async with aclosing(self._events(request)) as events:
            async for event, _size in events:
                if isinstance(event, dict) and "error" in event:
                    raise self._error(event["error"])
                for piece in stream.feed(event):
                    is_empty = is_empty and not isinstance(piece, ContentSegment)
                    yield piece
        if not stream.is_complete:
            raise self._api.request_error("connection closed before the answer was complete")
        for piece in stream.segments.end():
            is_empty = False
            yield piece
        response = stream.response()
        self._check_finish_reason(response, is_empty=is_empty)
        yield response

    def _error(self, error: Any) -> ProviderRequestError:
        found = error if isinstance(error, Mapping) else {}
        code = found.get("code")
        reason = f"{found.get('status')}: {found.get('message')}"
        return self._api.request_error(
            reason, code if isinstance(code, int) else None, retry_after({}, found)
        )

    def _check_finish_reason(self, response: ProviderResponse, *, is_empty: bool) -> None:
        """Raise for a finish reason without an answer; unknown reasons pass."""
        reason = (response.metadata or {}).get("finish_reason")
        if reason in _NORMAL_END:
            return
        if _MALFORMED.fullmatch(reason):
            raise UnreadableAnswerError(f"the API discarded the model's answer: {reason}")
        if _REFUSED.fullmatch(reason) or _is_blocked(response):
            raise self._api.request_error(f"the answer was blocked: {reason}", 200)
        if is_empty:
            raise self._api.request_error(f"the model ended without an answer: {reason}", 200)
        _log.warning("answer_ended_early", provider=self.name, finish_reason=reason)


def _with_collection(model: str) -> str:
    return model if "/" in model else f"models/{model}"


def _is_blocked(response: ProviderResponse) -> bool:
    feedback = response.extra.get(OWNER, {}).get("fields", {}).get("promptFeedback")
    return isinstance(feedback, Mapping) and "blockReason" in feedback


def _tool_choice(settings: Mapping[str, Any], tools: Mapping[str, Any]) -> dict[str, Any]:
    choice = read_tool_choice(settings, tools)
    if choice is None:
        return {}
    config: dict[str, Any] = {"mode": _CHOICES.get(choice, "ANY")}
    if choice not in _CHOICES:
        config["allowedFunctionNames"] = [choice]
    return {"toolConfig": {"functionCallingConfig": config}}


def _with_signature(message: Message) -> Message:
    """Add the signature that lets the API accept another model's call."""
    calls = [index for index, segment in enumerate(message.segments) if segment.tool_call is not None]
    if not calls or any(segment.extra.get("gemini") for segment in message.segments):
        return message
    segments = list(message.segments)
    segments[calls[0]] = with_extra(segments[calls[0]], "gemini", fields=_SKIP_SIGNATURE)
    return attrs.evolve(message, segments=tuple(segments))
