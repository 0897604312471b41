"""Content parts of messages in the Responses API."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from kantan_agents.errors import InvalidProtocolValueError
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.media import (
    FILENAME,
    default_filename,
    extra_of_file,
    filename_of,
    is_document,
    named,
    split_url,
)
from kantan_agents.models.protocol.translate.openai_responses.tools import OWNER
from kantan_agents.models.protocol.translate.reader import unknown_fields, with_extra
from kantan_agents.models.protocol.types import MEDIA, ContentSegment, ContentType

_SUBTYPE = re.compile(r"[\w.+-]+")
PDF = "application/pdf"
_PDF_START = base64.b64encode(b"%PDF-").decode()[:6]
_DATA_URL = re.compile("data:", re.IGNORECASE)
_MIME = re.compile(r"[\w.+-]+/[\w.+-]+")
REFUSAL = {"openai": {"fields": {"type": "refusal"}}}
"""``extra`` of text in which the model declines, in both OpenAI formats."""

_TEXTS = ("input_text", "output_text", "text", "summary_text")


def segments_of_content(
    content: Any, path: str, losses: Losses, *, keep_unknown: bool = False
) -> list[ContentSegment]:
    """Return the segments of a message's content."""
    if isinstance(content, str):
        return [ContentSegment.of_text(content)]
    if content is None:
        return []
    if not isinstance(content, Sequence):
        losses.add(path, f"must be a str or a list of parts, not {type(content).__name__}")
        return []
    segments = []
    for index, part in enumerate(content):
        where = f"{path}[{index}]"
        try:
            segment = _segment(part, where, losses)
        except InvalidProtocolValueError as error:
            raise invalid_item(error, where) from None
        if segment is not None:
            segments.append(_with_unknown_fields(segment, part) if keep_unknown else segment)
    return segments


def invalid_item(error: InvalidProtocolValueError, path: str) -> InvalidProtocolValueError:
    """Add an item's path to an error."""
    problems = [f"{path}.{problem}" for problem in error.problems]
    return InvalidProtocolValueError(value=error.value, problems=problems)


def _with_unknown_fields(segment: ContentSegment, part: Mapping[str, Any]) -> ContentSegment:
    kind = part["type"]
    if kind in get_args(ContentType) and kind != "text":
        return segment
    known = {"type", "refusal", *(_OF_PART if kind not in _TEXTS else ("text",))}
    # Null or empty fields carry no information.
    fields = {name: value for name, value in unknown_fields(part, *known).items() if value not in (None, [])}
    if kind == "input_file" and segment.type != "file":
        if part.get("filename") not in (None, _filename(segment)):
            fields["filename"] = part["filename"]
        if segment.type == "image":
            fields["type"] = kind
    return with_extra(segment, OWNER, fields=fields)


_OF_PART = (
    "image_url",
    "detail",
    "input_audio",
    "data",
    "format",
    "video_url",
    "file_data",
    "file_url",
    "filename",
)


def _segment(part: Any, path: str, losses: Losses) -> ContentSegment | None:
    if not isinstance(part, Mapping):
        losses.add(path, f"must be an object, not {type(part).__name__}")
        return None
    kind = part.get("type")
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return ContentSegment.of_text(part["text"])
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return ContentSegment("text", text=part["refusal"], extra=REFUSAL)
    if kind in get_args(ContentType):  # the protocol's own form: video, ui
        return ContentSegment.from_dict(part).copied()
    found = _media(kind, part)
    if found is None and part.get("file_id") is not None:
        losses.add(
            path,
            f"a part of the type {kind!r} with the id of a file that is stored at OpenAI: "
            "give its content as file_data or image_url, or the URL of a file as file_url",
        )
    elif found is None:
        losses.add(path, f"a part of the type {kind!r} without data")
    return found


def _media(kind: Any, part: Mapping[str, Any]) -> ContentSegment | None:
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        detail = part.get("detail")
        extra = {} if detail in (None, "auto") else {"detail": detail}
        return _of_url("image", part["image_url"], None, extra)
    if kind == "input_audio":
        audio = part.get("input_audio", part)
        if isinstance(audio, Mapping) and isinstance(audio.get("data"), str):
            return ContentSegment(
                "audio", data=audio["data"], mime_type=f"audio/{audio.get('format', 'wav')}"
            )
    if kind == "video_url" and isinstance(part.get("video_url"), Mapping):
        return _of_url("video", str(part["video_url"].get("url", "")), None, {})
    if kind == "input_file":
        url = part.get("file_url")
        if isinstance(part.get("file_data"), str) and part["file_data"]:
            return _file(part["file_data"], part.get("filename"))
        if isinstance(url, str) and _DATA_URL.match(url):
            return _file(url, part.get("filename"))
        if isinstance(url, str) and url:
            return ContentSegment("file", data=url, extra=named(part.get("filename")))
    return None


def _of_url(
    kind: ContentType, url: str, mime_type: str | None, extra: Mapping[str, Any]
) -> ContentSegment | None:
    data, found = split_url(url)
    return ContentSegment(kind, data=data, mime_type=found or mime_type, extra=extra) if data else None


def _file(data: str, name: Any) -> ContentSegment:
    guessed = mimetypes.guess_type(name)[0] if isinstance(name, str) else None
    data, found = split_url(data)
    mime_type = found or guessed or (PDF if data.startswith(_PDF_START) else None)
    kind: Any = (mime_type or "").partition("/")[0].lower()
    if kind in MEDIA:
        return ContentSegment(kind, data=data, mime_type=mime_type)
    return ContentSegment("file", data=data, mime_type=mime_type, extra=named(name, mime_type))


def parts_of(
    segments: Iterable[ContentSegment], path: str, losses: Losses, *, has_audio: bool = True
) -> list[dict[str, Any]]:
    """Return a user, system or tool message's segments as parts.

    Without ``has_audio``, audio becomes a file.
    """
    parts = []
    for index, segment in enumerate(segments):
        where = f"{path}[{index}]"
        is_image = segment.type == "image"
        extra = unknown_fields(segment.extra, "detail") if is_image else extra_of_file(segment)
        own = losses.format_extra(extra, f"{where}.", "fields")
        fields = own.get("fields")
        named = fields if isinstance(fields, Mapping) else {}
        is_file = is_image and named.get("type") == "input_file"
        part = _file_part(segment) if is_file else _part(segment, has_audio=has_audio)
        if part is None:
            losses.add(where, f"this segment of type {segment.type} is not allowed here")
            continue
        if part["type"] == "input_file":
            part = unknown_fields(part, *named)
        parts.append(losses.with_fields(part, own, f"{where}."))
    return parts


def text_part(segment: ContentSegment) -> dict[str, Any]:
    """Return a segment of type text as a part."""
    if is_refusal(segment):
        return {"type": "refusal", "refusal": segment.text}
    return {"type": "output_text", "text": segment.text}


def is_refusal(segment: ContentSegment) -> bool:
    """Return whether a segment is a ``refusal``."""
    return segment.extra.get("openai") == REFUSAL["openai"]


def _part(segment: ContentSegment, *, has_audio: bool) -> dict[str, Any] | None:
    if segment.type == "image":
        url = _image_url(segment)
        detail = segment.extra.get("detail", "auto")
        return None if url is None else {"type": "input_image", "image_url": url, "detail": detail}
    if segment.type == "text":
        return None if is_refusal(segment) else {"type": "input_text", "text": segment.text}
    if segment.type == "file":
        return _document_part(segment)
    subtype = (segment.mime_type or "").partition("/")[2]
    is_audio = segment.type == "audio" and segment.mime_type in ("audio/wav", "audio/mp3")
    if has_audio and is_audio and not segment.is_url:
        return {"type": "input_audio", "input_audio": {"data": segment.data, "format": subtype}}
    return _file_part(segment)


def _file_part(segment: ContentSegment) -> dict[str, Any] | None:
    if segment.type not in MEDIA or segment.data is None or segment.is_url:
        return None
    kind, _, subtype = (segment.mime_type or "").partition("/")
    if kind != segment.type or not _SUBTYPE.fullmatch(subtype):
        return None
    return {"type": "input_file", "filename": _filename(segment), "file_data": _data_url(segment)}


def _document_part(segment: ContentSegment) -> dict[str, Any] | None:
    name = filename_of(segment)
    if segment.is_url:
        is_plain_url = segment.mime_type is None and not _DATA_URL.match(segment.data or "")
        given = {} if name is None else {FILENAME: name}
        return {"type": "input_file", "file_url": segment.data, **given} if is_plain_url else None
    if not is_document(segment.mime_type) or not _MIME.fullmatch(segment.mime_type or ""):
        return None
    return {"type": "input_file", FILENAME: name or _filename(segment), "file_data": _data_url(segment)}


def _filename(segment: ContentSegment) -> str:
    return default_filename(segment.mime_type)


def _image_url(segment: ContentSegment) -> str | None:
    data = segment.data or ""
    if segment.is_url:
        return data if segment.mime_type is None else None
    return _data_url(segment) if _MIME.fullmatch(segment.mime_type or "") else None


def _data_url(segment: ContentSegment) -> str:
    return f"data:{segment.mime_type};base64,{segment.data}"
