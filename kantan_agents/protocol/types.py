"""The protocol's types (spec protocol 3): what a provider answers with."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, get_args
from uuid import uuid4

import attrs

from kantan_agents.protocol.json_data import is_text
from kantan_agents.protocol.values import Value, data_problems, made_of, nullable, spelled

ContentType = Literal["text", "image", "audio", "video", "ui", "tool_call"]
"""The kinds of segments."""

_TYPES: tuple[ContentType, ...] = get_args(ContentType)

MEDIA: tuple[ContentType, ...] = ("image", "audio", "video")
"""The kinds whose payload is ``data``."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SHOWN = 60


def as_tuple(given: Any) -> Any:
    """Return a list as a tuple, anything else as it is."""
    return tuple(given) if isinstance(given, list) else given


def _call_id(given: Any) -> Any:
    return str(uuid4()) if given is None or given == "" else given


def _short(value: Any) -> str:
    is_long = isinstance(value, str) and len(value) > _SHOWN
    return f"<{len(value)} characters, {value[:20]!r}...>" if is_long else repr(value)


@attrs.frozen
class ProviderToolCall(Value):
    """The intention to run a tool.

    Args:
        name: Name of the tool, exactly as in ``context.tools``.
        args: What it is called with: an object, in a valid call. Whatever JSON a model has written is kept,
            and what is no object is told to the model.
        id: The call's id; a UUID if the model gives none.
    """

    name: str
    args: Any = attrs.field(factory=dict, metadata=nullable())
    id: str = attrs.field(default="", converter=_call_id)

    def _mistakes(self) -> Iterable[str]:
        if not is_text(self.name) or not self.name:
            yield f"name: must be a str that is not empty, not {self.name!r}"
        if not is_text(self.id):
            yield f"id: must be a str, not {self.id!r}"
        yield from data_problems("args", self.args)


@attrs.frozen
class ContentSegment(Value):
    """One piece of an answer or of a message.

    Args:
        type: Its kind; it says which of the others is there, and no other may be.
        text: With ``"text"``: the text.
        data: With ``"image"``, ``"audio"`` and ``"video"``: base64, or a URL.
        mime_type: With these: such as ``"image/png"``.
        tool_call: With ``"tool_call"``: the call.
        ui: With ``"ui"``: what a frontend is to render, JSON data. Nothing in this library acts on it.

    Raises:
        InvalidProtocolValueError: E50, the payload is missing, not that of the type, or no such data.
    """

    type: ContentType
    text: str | None = None
    data: str | None = attrs.field(default=None, repr=_short)
    mime_type: str | None = attrs.field(default=None, metadata=spelled("mimeType"))
    tool_call: ProviderToolCall | None = attrs.field(
        default=None, metadata={**spelled("toolCall"), **made_of(ProviderToolCall)}
    )
    ui: Any = None

    @classmethod
    def of_text(cls, text: str) -> ContentSegment:
        """Return a segment of text."""
        return cls("text", text=text)

    @classmethod
    def of_call(cls, name: str, args: Any = None, id: str = "") -> ContentSegment:
        """Return a segment that calls a tool."""
        return cls("tool_call", tool_call=ProviderToolCall(name, {} if args is None else args, id))

    @property
    def is_url(self) -> bool:
        """Whether ``data`` is a URL rather than base64."""
        return self.data is not None and _URL.match(self.data) is not None

    def _mistakes(self) -> Iterable[str]:
        if self.type not in _TYPES:
            known = ", ".join(_TYPES)
            yield f"type: must be one of {known}, not {self.type!r}"
            return
        payload = "data" if self.type in MEDIA else self.type
        for name in ("text", "data", "tool_call", "ui"):
            given = getattr(self, name) is not None
            spelling = "toolCall" if name == "tool_call" else name
            if given and name != payload:
                yield f"{spelling}: does not belong to a segment of type {self.type}"
            if not given and name == payload:
                yield f"{spelling}: is missing, a segment of type {self.type} needs it"
        yield from self._wrong_types()

    def _wrong_types(self) -> Iterable[str]:
        if self.text is not None and not is_text(self.text):
            yield f"text: must be a str without lone surrogates, not {type(self.text).__name__}"
        if self.tool_call is not None and not isinstance(self.tool_call, ProviderToolCall):
            yield f"toolCall: must be a ProviderToolCall, not {type(self.tool_call).__name__}"
        if self.mime_type is not None and (self.type not in MEDIA or not is_text(self.mime_type)):
            yield "mimeType: must be a str, and belongs to a segment of type image, audio or video"
        if self.data is not None:
            problem = _data_problem(self.data)
            if problem:
                yield f"data: {problem}"
        yield from data_problems("ui", self.ui)


@attrs.frozen
class ProviderResponse(Value):
    """What ``Provider.generate`` returns.

    Args:
        segments: The pieces of the answer in order; none at all is an empty answer.
        metadata: Whatever else is known: ``{"usage": {"input_tokens": 3, "output_tokens": 5}, ...}``.

    Raises:
        InvalidProtocolValueError: E50.
    """

    segments: tuple[ContentSegment, ...] = attrs.field(
        converter=as_tuple,
        metadata=made_of(ContentSegment, many=True),
    )
    metadata: Any = None

    @property
    def text(self) -> str:
        """The texts of all text segments, one after the other."""
        return "".join(segment.text or "" for segment in self.segments)

    @property
    def tool_calls(self) -> tuple[ProviderToolCall, ...]:
        """The calls of all segments."""
        return tuple(segment.tool_call for segment in self.segments if segment.tool_call is not None)

    def _mistakes(self) -> Iterable[str]:
        yield from segment_problems("segments", self.segments)
        yield from data_problems("metadata", self.metadata)


def segment_problems(name: str, segments: Any) -> Iterable[str]:
    """Yield what keeps the value of a field from being a tuple of segments."""
    if not isinstance(segments, tuple):
        yield f"{name}: must be a list, not {type(segments).__name__}"
        return
    for place, segment in enumerate(segments):
        if not isinstance(segment, ContentSegment):
            yield f"{name}[{place}]: must be a ContentSegment, not {type(segment).__name__}"


def _data_problem(data: Any) -> str | None:
    if not is_text(data):
        return f"must be a str, not {type(data).__name__}"
    if not data:
        return "is empty"
    if _URL.match(data):
        return None
    return None if _is_base64(data) else "is neither base64 nor a URL"


def _is_base64(text: str) -> bool:
    # Decoding would say the same, and takes five times as long.
    if len(text) % 4 or not text.isascii():
        return False
    written = text.encode()
    body = written.rstrip(b"=")
    return len(written) - len(body) <= 2 and not body.translate(None, _ALPHABET)  # noqa: PLR2004 - of the format
