"""What the providers over HTTP share."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Final, NoReturn, get_args

from typing_extensions import Self

from kantan_agents.errors import InvalidOptionError, InvalidProtocolValueError
from kantan_agents.protocol.http.api import LARGE, Api, UnreadableAnswerError, off_loop, parsed
from kantan_agents.protocol.http.sendable import sendable, size_of
from kantan_agents.protocol.pain import OnUnreadable, unreadable
from kantan_agents.protocol.provider import Message, ProviderContext
from kantan_agents.protocol.types import ContentSegment, ProviderResponse
from kantan_agents.support.log import get_logger

_CUT: Final = ("max_tokens", "model_context_window_exceeded", "MAX_TOKENS")
_log = get_logger("kantan_agents.protocol")


class HttpProvider:
    """A provider over HTTP: asks, reads and streams; what is asked and how it is read is the subclass's.

    Attributes:
        name: ``"<api>/<model>"``.
        model: The model's name.
        supports_output_schema: Whether it is given the schema of a structured output.
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

    @abstractmethod
    def _body(
        self, messages: tuple[Message, ...], context: ProviderContext, *, is_stream: bool
    ) -> dict[str, Any]:
        """Return the body of the request; runs in a thread where there is much to send."""

    @abstractmethod
    def _path(self, *, is_stream: bool) -> str:
        """Return the path of the request."""

    @abstractmethod
    def _read(self, data: Any) -> ProviderResponse:
        """Return the answer."""

    @abstractmethod
    def _pieces(
        self, events: AsyncIterator[tuple[Any, int]]
    ) -> AsyncGenerator[ContentSegment | ProviderResponse, None]:
        """Yield the pieces of a streamed answer."""

    async def generate(self, prompt: str, context: ProviderContext) -> ProviderResponse:
        """Answer.

        Raises:
            ProviderRequestError: E53, the API refused the request, or could not be reached.
            AgentPainException: E51, its answer cannot be understood.
            UntranslatableError: E52, the conversation has something the API has no place for.
        """
        content = await self._content(prompt, context, is_stream=False)
        try:
            data = await self._api.ask(self._path(is_stream=False), content, _headers(context))
            response = await off_loop(lambda: self._read(parsed(data)), len(data))
        except (UnreadableAnswerError, InvalidProtocolValueError) as error:
            wrong = error
        else:
            self._warn_if_cut(response)
            return response
        # Out here the error is not its context: it may still hold the key.
        return self._unreadable(wrong)

    async def stream(
        self, prompt: str, context: ProviderContext
    ) -> AsyncGenerator[ContentSegment | ProviderResponse, None]:
        """Yield the answer piece by piece; the last is a ``ProviderResponse`` with the metadata.

        Raises:
            KantanAgentsError: As ``generate``; E53 also if the answer breaks off.
        """
        content = await self._content(prompt, context, is_stream=True)
        events = self._events(self._api.stream(self._path(is_stream=True), content, _headers(context)))
        try:
            async with aclosing(events), aclosing(self._pieces(events)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ProviderResponse):
                        self._warn_if_cut(piece)
                    yield piece
        except (UnreadableAnswerError, InvalidProtocolValueError) as error:
            wrong = error
        else:
            return
        yield self._unreadable(wrong)

    async def _events(self, raw: AsyncGenerator[bytes, None]) -> AsyncGenerator[tuple[Any, int], None]:
        async with aclosing(raw):
            async for data in raw:
                yield await off_loop(partial(parsed, data), len(data)), len(data)

    async def _content(self, prompt: str, context: ProviderContext, *, is_stream: bool) -> bytes:
        def write() -> bytes:
            messages = sendable(prompt, context, self._owner)
            body = self._body(messages, context, is_stream=is_stream)
            args = {k: v for k, v in (context.settings.get("extra_args") or {}).items() if k != "stop"}
            for more in (args, context.settings.get("extra_body") or {}):
                body = _merged(body, more)
            return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()

        return await off_loop(write, size_of(context, LARGE))

    def _unreadable(self, error: UnreadableAnswerError | InvalidProtocolValueError) -> ProviderResponse:
        if isinstance(error, UnreadableAnswerError):
            reason = self._api.without_key(str(error), error.said)
        else:
            reason = self._api.without_key("; ".join(error.problems))
        return unreadable(self.name, reason, self._on_unreadable)

    def _warn_if_cut(self, response: ProviderResponse) -> None:
        reason = (response.metadata or {}).get("finish_reason")
        if reason in _CUT:
            _log.warning("answer_cut_off", provider=self.name, finish_reason=reason)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._api.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        # Nothing in it changes but the connections, and these are for all who ask.
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be pickled: its API key would be written out with it. "
            "Make one anew where it is needed."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"


def _merged(body: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(body)
    for name, value in more.items():
        given = out.get(name)
        out[name] = {**given, **value} if isinstance(given, dict) and isinstance(value, Mapping) else value
    return out


def _headers(context: ProviderContext) -> dict[str, str]:
    given = context.settings.get("extra_headers") or {}
    return {name: str(value) for name, value in given.items()}


def key_of(api_key: Any, *variables: str) -> str:
    """Return the key that was given, or that of the first environment variable that has one.

    Raises:
        InvalidOptionError: E75, there is none; ``""`` says that none is needed.
    """
    if api_key is None:
        api_key = next((os.environ[name] for name in variables if os.environ.get(name)), None)
    if api_key is None:
        reason = f"is needed: give it, or set {' or '.join(variables)}"
        raise InvalidOptionError(option="api_key", reason=reason)
    if not isinstance(api_key, str) or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise InvalidOptionError(option="api_key", reason="must be a text of visible ASCII characters")
    return api_key


def checked_model(model: Any) -> str:
    """Return the name of a model, which becomes a part of a URL.

    Raises:
        InvalidOptionError: E75, it is none.
    """
    if not isinstance(model, str) or not model.strip() or ".." in model or not model.isprintable():
        raise InvalidOptionError(option="model", reason=f"must be the name of a model, not {model!r}"[:300])
    return model


def checked_timeout(timeout: Any) -> float | None:
    """Return the seconds of a timeout.

    Raises:
        InvalidOptionError: E75, they are no number above 0.
    """
    is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if timeout is not None and not (is_number and timeout > 0):
        raise InvalidOptionError(option="timeout", reason=f"must be seconds above 0 or None, not {timeout!r}")
    return None if timeout is None else float(timeout)
