"""The values of a model's response (spec protocol 3)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, get_args
from uuid import uuid4

import attrs

from kantan_agents.models.protocol.json_data import is_text
from kantan_agents.models.protocol.values import Value, data_problems, json_name, nested_value, nullable

ContentType = Literal["text", "image", "audio", "video", "file", "ui", "tool_call"]
"""The types of segments: the protocol's types, and ``"file"`` for a document such as a PDF."""

_TYPES: tuple[ContentType, ...] = get_args(ContentType)

MEDIA: tuple[ContentType, ...] = ("image", "audio", "video", "file")
"""The types of segments whose payload is ``data``."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SHOWN = 60


def as_tuple(given: Any) -> Any:
    """Return a list as a tuple."""
    return tuple(given) if isinstance(given, list) else given


def _call_id(given: Any) -> Any:
    return str(uuid4()) if given is None or given == "" else given


def _short(value: Any) -> str:
    is_long = isinstance(value, str) and len(value) > _SHOWN
    return f"<{len(value)} characters, {value[:20]!r}...>" if is_long else repr(value)


@attrs.frozen
class ProviderToolCall(Value):
    """A tool call that a model requests.

    Args:
        name: Name of the tool, exactly as in ``context.tools``.
        args: Arguments of the call, an object if the call is valid. Any other JSON value is preserved, and
            the model gets an error as the result of the call.
        id: Id of the call; a new UUID if it is missing or empty.
    """

    name: str
    args: Any = attrs.field(factory=dict, metadata=nullable())
    id: str = attrs.field(default="", converter=_call_id)

    def _problems(self) -> Iterable[str]:
        if not is_text(self.name) or not self.name:
            yield f"name: must be a non-empty str, not {self.name!r}"
        if not is_text(self.id):
            yield f"id: must be a str, not {self.id!r}"
        yield from data_problems("args", self.args)


@attrs.frozen
class ContentSegment(Value):
    """One part of a response or a message: text, media, a UI description or a tool call.

    Args:
        type: Determines which of the payload fields below is set.
        text: The text, with ``"text"``.
        data: Base64 or a URL, with ``"image"``, ``"audio"``, ``"video"`` and ``"file"``.
        mime_type: The media type, such as ``"image/png"``; optional, only with ``data``.
        tool_call: The call, with ``"tool_call"``.
        ui: JSON data for a frontend to render, with ``"ui"``. This library does not interpret it.

    Raises:
        InvalidProtocolValueError: E50, the payload is missing, invalid, or belongs to another type.
    """

    type: ContentType
    text: str | None = None
    data: str | None = attrs.field(default=None, repr=_short)
    mime_type: str | None = attrs.field(default=None, metadata=json_name("mimeType"))
    tool_call: ProviderToolCall | None = attrs.field(
        default=None, metadata={**json_name("toolCall"), **nested_value(ProviderToolCall)}
    )
    ui: Any = None

    @classmethod
    def of_text(cls, text: str) -> ContentSegment:
        """Return a segment of type text."""
        return cls("text", text=text)

    @classmethod
    def of_call(cls, name: str, args: Any = None, id: str = "") -> ContentSegment:
        """Return a tool call segment."""
        return cls("tool_call", tool_call=ProviderToolCall(name, {} if args is None else args, id))

    def copied(self) -> ContentSegment:
        """Return a copy that shares no data with this segment."""
        if self.tool_call is None and self.ui is None and not self.extra:
            return ContentSegment(self.type, self.text, self.data, self.mime_type)
        return ContentSegment.from_dict(self.to_dict())

    @property
    def is_url(self) -> bool:
        """Whether ``data`` is a URL rather than base64."""
        return self.data is not None and _URL.match(self.data) is not None

    def _problems(self) -> Iterable[str]:
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
            yield "mimeType: must be a str, and belongs to a segment of type image, audio, video or file"
        if self.data is not None:
            problem = _data_problem(self.data)
            if problem:
                yield f"data: {problem}"
        yield from data_problems("ui", self.ui)


@attrs.frozen
class ProviderResponse(Value):
    """A model's response, as ``Provider.generate`` returns it.

    Args:
        segments: The parts of the response in order; empty for an empty response.
        metadata: JSON data about the response, such as
            ``{"usage": {"input_tokens": 3, "output_tokens": 5}, "model": "..."}``. ``usage`` may also have
            ``total_tokens`` and ``cached_tokens``, a part of ``input_tokens``, and the names of other APIs;
            Anthropic's ``cache_read_input_tokens`` are added to ``input_tokens``. Without it, the number of
            tokens is unknown. ``model`` is the name in the trace; ``requests``, how many requests to the API
            there were; ``finish_reason``, why the answer has ended.

    Raises:
        InvalidProtocolValueError: E50, ``segments`` is not a list of segments or ``metadata`` not JSON data.
    """

    segments: tuple[ContentSegment, ...] = attrs.field(
        converter=as_tuple,
        metadata=nested_value(ContentSegment, many=True),
    )
    metadata: Any = None

    @property
    def text(self) -> str:
        """The text of all text segments, concatenated."""
        return "".join(segment.text or "" for segment in self.segments)

    @property
    def tool_calls(self) -> tuple[ProviderToolCall, ...]:
        """The tool calls of all segments, in order."""
        return tuple(segment.tool_call for segment in self.segments if segment.tool_call is not None)

    def _problems(self) -> Iterable[str]:
        yield from segment_problems("segments", self.segments)
        yield from data_problems("metadata", self.metadata)


def segment_problems(name: str, segments: Any) -> Iterable[str]:
    """Yield problems of a tuple of segments."""
    if not isinstance(segments, tuple):
        yield f"{name}: must be a list, not {type(segments).__name__}"
        return
    for index, segment in enumerate(segments):
        if not isinstance(segment, ContentSegment):
            yield f"{name}[{index}]: must be a ContentSegment, not {type(segment).__name__}"


def _data_problem(data: Any) -> str | None:
    if not is_text(data):
        return f"must be a str, not {type(data).__name__}"
    if not data:
        return "is empty"
    if _URL.match(data):
        return None
    return None if _is_base64(data) else "is neither base64 nor a URL"


def _is_base64(text: str) -> bool:
    # Five times as fast as decoding, with the same result.
    if len(text) % 4 or not text.isascii():
        return False
    written = text.encode()
    body = written.rstrip(b"=")
    return len(written) - len(body) <= 2 and not body.translate(None, _ALPHABET)  # noqa: PLR2004 - of the format
