"""``HttpProvider``: the base class of HTTP providers."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Final, NoReturn, get_args

import attrs
from typing_extensions import Self

from kantan_agents.errors import InvalidOptionError, InvalidProtocolValueError
from kantan_agents.models.protocol.http.api import LARGE, Api, UnreadableAnswerError, off_loop, parse_json
from kantan_agents.models.protocol.http.conversation import fit_conversation, size_of
from kantan_agents.models.protocol.pieces import ArgumentsPiece, ReasoningPiece, Streamed
from kantan_agents.models.protocol.provider import Message, ProviderContext
from kantan_agents.models.protocol.types import ProviderResponse
from kantan_agents.models.protocol.unreadable_replies import OnUnreadable, unreadable


@attrs.frozen
class HttpRequest:
    """One request of a model call; ``size`` is approximate."""

    body: dict[str, Any]
    headers: dict[str, str]
    size: int


_CONNECTED: Final = ("_api", "_cache")
_NOT_OF_BODY: Final = ("stop", "timeout")
"""Extra arguments that the API names differently, or for the client."""


class HttpProvider:
    """Base class of the HTTP providers. A subclass writes requests and parses responses.

    Attributes:
        name: ``"<api>/<model>"``.
        model: Name of the model.
        supports_output_schema: Whether the provider gets the schema of a structured output.
    """

    supports_output_schema = True
    _owner: str

    def __init__(self, name: str, model: str, api: Api, on_unreadable: OnUnreadable) -> None:
        if on_unreadable not in get_args(OnUnreadable):
            reason = f'must be "raise" or "text", not {on_unreadable!r}'
            raise InvalidOptionError(option="on_unreadable", reason=reason)
        self.name = name
        self.model = model
        self._api = api
        self._on_unreadable = on_unreadable

    @property
    def cache_identity(self) -> dict[str, Any]:
        """Part of a ``Cache`` key; includes the API key."""
        own = {name: value for name, value in vars(self).items() if name not in _CONNECTED}
        return {**own, "request_options": getattr(self, "request_options", None), "api": self._api.identity}

    @abstractmethod
    def _body(
        self, messages: tuple[Message, ...], context: ProviderContext, *, is_stream: bool
    ) -> dict[str, Any]:
        """Return the request body; called in a thread if large."""

    @abstractmethod
    def _path(self, *, is_stream: bool) -> str:
        """Return the URL path of the request."""

    @abstractmethod
    def _read(self, data: Any) -> ProviderResponse:
        """Return the parsed JSON of a response as a ``ProviderResponse``."""

    @abstractmethod
    def _stream(self, request: HttpRequest) -> AsyncGenerator[Streamed, None]:
        """Yield the segments as they arrive, then the metadata."""

    async def generate(self, prompt: str, context: ProviderContext) -> ProviderResponse:
        """Call the model once and return its response.

        Args:
            prompt: Text of the user's last message.
            context: The conversation, the tools, the instructions and the settings.

        Raises:
            ProviderRequestError: E53, the API rejected the request or could not be reached.
            AgentPainException: E51, the response cannot be parsed.
            UntranslatableError: E52, the API cannot represent content of the conversation.
        """
        request = await self._request(prompt, context, is_stream=False)
        try:
            return await self._call(request)
        except (UnreadableAnswerError, InvalidProtocolValueError) as error:
            unreadable_error = error
        # Outside of the except block: a context could contain the key.
        return self._unreadable(unreadable_error)

    async def stream(self, prompt: str, context: ProviderContext) -> AsyncGenerator[Streamed, None]:
        """Call the model and yield segments as they arrive, then a ``ProviderResponse`` with the metadata.

        If ``context.wants_pieces`` is True, reasoning and the arguments of calls are yielded as well.

        Args:
            prompt: Text of the user's last message.
            context: The conversation, the tools, the instructions and the settings.

        Raises:
            KantanAgentsError: As for ``generate``; E53 if the connection breaks during the response.
        """
        request = await self._request(prompt, context, is_stream=True)
        try:
            async with aclosing(self._stream(request)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, (ReasoningPiece, ArgumentsPiece)) and not context.wants_pieces:
                        continue
                    yield piece
        except (UnreadableAnswerError, InvalidProtocolValueError) as error:
            unreadable_error = error
        else:
            return
        yield self._unreadable(unreadable_error)

    async def _call(self, request: HttpRequest) -> ProviderResponse:
        data, size = await self._post(request)
        return await off_loop(lambda: self._read(data), size)

    async def _post(self, request: HttpRequest) -> tuple[Any, int]:
        content = await off_loop(lambda: _encoded(request.body), request.size)
        data = await self._api.post(self._path(is_stream=False), content, request.headers)
        return await off_loop(lambda: parse_json(data), len(data)), len(data)

    async def _events(self, request: HttpRequest) -> AsyncGenerator[tuple[Any, int], None]:
        content = await off_loop(lambda: _encoded(request.body), request.size)
        raw = self._api.stream(self._path(is_stream=True), content, request.headers)
        async with aclosing(raw):
            async for data in raw:
                yield await off_loop(partial(parse_json, data), len(data)), len(data)

    def _finished(self, body: dict[str, Any]) -> dict[str, Any]:
        """Complete a body with fields that depend on all others."""
        return body

    async def _request(self, prompt: str, context: ProviderContext, *, is_stream: bool) -> HttpRequest:
        def write() -> dict[str, Any]:
            messages = fit_conversation(prompt, context, self._owner)
            body = self._body(messages, context, is_stream=is_stream)
            args = context.settings.get("extra_args") or {}
            args = {name: value for name, value in args.items() if name not in _NOT_OF_BODY}
            for more in (args, context.settings.get("extra_body") or {}):
                body = _merged(body, more)
            return self._finished(body)

        size = size_of(context, LARGE)
        return HttpRequest(await off_loop(write, size), _headers(context), size)

    def _unreadable(self, error: UnreadableAnswerError | InvalidProtocolValueError) -> ProviderResponse:
        if isinstance(error, UnreadableAnswerError):
            reason = self._api.redact(str(error), error.body)
        else:
            reason = self._api.redact("; ".join(error.problems))
        return unreadable(self.name, reason, self._on_unreadable)

    async def aclose(self) -> None:
        """Close the running event loop's connections; a later request opens new ones."""
        await self._api.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        # Immutable apart from its connections, which copies share.
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be pickled: its API key would be written out with it. "
            "Create a new one where it is needed."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()


def _merged(body: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(body)
    for name, value in more.items():
        given = out.get(name)
        out[name] = {**given, **value} if isinstance(given, dict) and isinstance(value, Mapping) else value
    return out


def _headers(context: ProviderContext) -> dict[str, str]:
    given = context.settings.get("extra_headers") or {}
    return {name: str(value) for name, value in given.items()}
