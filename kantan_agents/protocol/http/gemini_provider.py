"""``GeminiProvider``: Gemini over Google's own API."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import attrs

from kantan_agents.errors import ProviderRequestError
from kantan_agents.protocol.http.api import Api, UnreadableAnswerError
from kantan_agents.protocol.http.gemini_stream import GeminiStream
from kantan_agents.protocol.http.provider import HttpProvider, checked_model, checked_timeout, key_of
from kantan_agents.protocol.http.refusals import retry_after
from kantan_agents.protocol.http.sendable import check_said
from kantan_agents.protocol.http.settings import choice_of, stops_of
from kantan_agents.protocol.json_data import plain
from kantan_agents.protocol.pain import OnUnreadable
from kantan_agents.protocol.provider import Message, ProviderContext
from kantan_agents.protocol.translate.gemini import messages_to_gemini, response_from_gemini, tools_to_gemini
from kantan_agents.protocol.translate.gemini.tools import FORMAT, SchemaField
from kantan_agents.protocol.translate.reading import with_own
from kantan_agents.protocol.types import ContentSegment, ProviderResponse

_BASE_URL: Final = "https://generativelanguage.googleapis.com"
_NUMBERS: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxOutputTokens",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
}
_CHOICES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_ENDED: Final = (None, "STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED")
_MISTAKEN: Final = re.compile(
    r"MALFORMED_.*|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS|MISSING_THOUGHT_SIGNATURE"
)
_OLD: Final = re.compile(r"gemini-[12]\b")
# What the API documents for calls that it has not made itself.
_NOT_SIGNED: Final = {"thoughtSignature": "skip_thought_signature_validator"}


class GeminiProvider(HttpProvider):
    """Gemini, over Google's own API: ``Agent(model=GeminiProvider("gemini-..."))`` (spec protocol 4).

    Of ``model_settings`` it knows ``temperature``, ``top_p``, ``max_tokens``, ``frequency_penalty``,
    ``presence_penalty``, ``tool_choice``, ``extra_body``, ``extra_args`` (``stop`` among them) and
    ``extra_headers``; the API has no place for the others, which are passed over. Thinking is set with
    ``extra_body={"generationConfig": {"thinkingConfig": {...}}}``. Signatures of thoughts go back to the API
    with the next turn, as it demands.

    Args:
        model: The model's name, ``"gemini-..."``, or with its collection, ``"tunedModels/..."``.
        api_key: The key; ``GEMINI_API_KEY`` or ``GOOGLE_API_KEY`` if it is not given, ``""`` for a server
            that needs none.
        base_url: Where the API is, without its version; ``GEMINI_BASE_URL`` or Google if it is not given.
        timeout: Seconds to wait for the next bytes of an answer; None for ever.
        on_unreadable: What becomes of an answer that cannot be understood: E51, or a text that says so.
        output_schema: Whether a structured output is asked for with the API's own ``responseJsonSchema``. If
            it is not said: with all models but those before Gemini 3, which refuse it together with tools.
        schema_field: Where the schema of a tool goes: ``"parametersJsonSchema"``, or ``"parameters"`` for a
            server that does not know that (see ``tools_to_gemini``).

    Raises:
        InvalidOptionError: E75, there is no key, or an argument has a value it cannot have.
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
    ) -> None:
        name = f"gemini/{checked_model(model)}"
        key = key_of(api_key, "GEMINI_API_KEY", "GOOGLE_API_KEY")
        url = base_url or os.environ.get("GEMINI_BASE_URL") or _BASE_URL
        headers = {"x-goog-api-key": key} if key else {}
        super().__init__(name, model, Api(name, url, key, headers, checked_timeout(timeout)), on_unreadable)
        self._is_old = _OLD.search(model) is not None
        self.supports_output_schema = not self._is_old if output_schema is None else bool(output_schema)
        self._schema_field: SchemaField = schema_field

    def _path(self, *, is_stream: bool) -> str:
        model = self.model if "/" in self.model else f"models/{self.model}"
        method = "streamGenerateContent?alt=sse" if is_stream else "generateContent"
        return f"/v1beta/{quote(model, safe='/')}:{method}"

    def _body(
        self,
        messages: tuple[Message, ...],
        context: ProviderContext,
        *,
        is_stream: bool,  # noqa: ARG002 - the path says it
    ) -> dict[str, Any]:
        settings = context.settings
        if not self._is_old:
            messages = tuple(_signed(message) for message in messages)
        body: dict[str, Any] = messages_to_gemini(messages, context.instructions)
        check_said(messages, body["contents"], FORMAT)
        tools = tools_to_gemini(context.tools.values(), schema_field=self._schema_field)
        if tools:
            body |= {"tools": tools, **_tool_choice(settings, context.tools)}
        config = {wire: settings[name] for name, wire in _NUMBERS.items() if name in settings}
        config |= stops_of(settings, "stopSequences")
        if context.output_schema is not None:
            config["responseMimeType"] = "application/json"
            config["responseJsonSchema"] = plain(context.output_schema)
        return {**body, "generationConfig": config} if config else body

    def _read(self, data: Any) -> ProviderResponse:
        response = response_from_gemini(data)
        self._check_end(response)
        return response

    async def _pieces(
        self, events: AsyncIterator[tuple[Any, int]]
    ) -> AsyncGenerator[ContentSegment | ProviderResponse, None]:
        stream = GeminiStream()
        async for event, _size in events:
            if isinstance(event, dict) and "error" in event:
                raise self._error(event["error"])
            for piece in stream.feed(event):
                yield piece
        if not stream.is_complete:
            raise self._api.failed("connection closed before the answer was complete")
        for piece in stream.pieces.end():
            yield piece
        response = stream.response()
        self._check_end(response)
        yield response

    def _error(self, error: Any) -> ProviderRequestError:
        found = error if isinstance(error, Mapping) else {}
        code = found.get("code")
        reason = f"{found.get('status')}: {found.get('message')}"
        return self._api.failed(reason, code if isinstance(code, int) else None, retry_after({}, found))

    def _check_end(self, response: ProviderResponse) -> None:
        reason = (response.metadata or {}).get("finish_reason")
        if reason in _ENDED:
            return
        if _MISTAKEN.fullmatch(reason):
            raise UnreadableAnswerError(f"the model's answer was thrown away: {reason}")
        raise self._api.failed(f"the answer was blocked: {reason}", 200)


def _tool_choice(settings: Mapping[str, Any], tools: Mapping[str, Any]) -> dict[str, Any]:
    choice = choice_of(settings, tools)
    if choice is None:
        return {}
    config: dict[str, Any] = {"mode": _CHOICES.get(choice, "ANY")}
    if choice not in _CHOICES:
        config["allowedFunctionNames"] = [choice]
    return {"toolConfig": {"functionCallingConfig": config}}


def _signed(message: Message) -> Message:
    """Return a message whose first call says that it was not this API that made it, if it was not."""
    calls = [place for place, segment in enumerate(message.segments) if segment.tool_call is not None]
    if not calls or any(segment.extra.get("gemini") for segment in message.segments):
        return message
    segments = list(message.segments)
    segments[calls[0]] = with_own(segments[calls[0]], "gemini", fields=_NOT_SIGNED)
    return attrs.evolve(message, segments=tuple(segments))
