"""Content parts of messages in chat completions."""

from __future__ import annotations

from types import NoneType
from typing import Any

from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.media import (
    Media,
    default_filename,
    extra_of_file,
    filename_of,
    is_document,
    named,
    split_url,
)
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields
from kantan_agents.models.protocol.types import ContentSegment

_AUDIO_FORMATS = {"audio/wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}
_AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mp3"}
_DETAIL = "detail"


def part_to_chat(segment: ContentSegment, role: str, losses: Losses, path: str) -> list[dict[str, Any]]:
    """Return a segment, not a call, as a part."""
    extra = {
        name: value
        for name, value in extra_of_file(segment).items()
        if (segment.type, name) != ("image", _DETAIL)
    }
    own = losses.format_extra(extra, path, "fields", "before", "after")
    part: dict[str, Any] = {}
    if segment.type == "text":
        part = {"type": "text", "text": segment.text}
        if own.get("fields") == {"type": "refusal"}:
            own, part = {**own, "fields": {}}, {"type": "refusal", "refusal": segment.text}
    elif role == "user" and segment.type == "image":
        part = _image(segment, losses, path)
    elif role == "user" and segment.type == "audio":
        part = _audio(segment, losses, path)
    elif role == "user" and segment.type == "file":
        part = _file(segment, losses, path)
    else:
        losses.add(path[:-1], f"a message of the role {role} cannot hold {segment.type}")
    part = losses.with_fields(part, own, path)
    return [*losses.blocks(own, "before", path), part, *losses.blocks(own, "after", path)]


def _image(segment: ContentSegment, losses: Losses, path: str) -> dict[str, Any]:
    media = Media.of(segment)
    if media.url is not None and media.mime is not None:
        losses.add(f"{path}mimeType", "is not allowed together with a URL")
    if media.url is None and media.mime is None:
        losses.add(f"{path}mimeType", "is missing, but required with base64")
    detail = {_DETAIL: segment.extra[_DETAIL]} if _DETAIL in segment.extra else {}
    return {"type": "image_url", "image_url": {"url": media.data_url, **detail}}


def _audio(segment: ContentSegment, losses: Losses, path: str) -> dict[str, Any]:
    media = Media.of(segment)
    if media.url is not None:
        losses.add(f"{path}data", "is a URL, but audio must be base64")
    if media.mime not in _AUDIO_FORMATS:
        losses.add(f"{path}mimeType", f"must be {' or '.join(_AUDIO_FORMATS)}, not {media.mime!r}"[:200])
    audio = {"data": media.base64, "format": _AUDIO_FORMATS.get(media.mime or "")}
    return {"type": "input_audio", "input_audio": audio}


def _file(segment: ContentSegment, losses: Losses, path: str) -> dict[str, Any]:
    media = Media.of(segment)
    if media.url is not None:
        losses.add(f"{path}data", "is a URL, but a file must be base64")
    if not is_document(media.mime):
        losses.add(f"{path}mimeType", f"must be that of a file, not {media.mime!r}"[:200])
    name = filename_of(segment) or default_filename(media.mime)
    return {"type": "file", "file": {"filename": name, "file_data": media.data_url}}


def parts_from_chat(
    content: Any, reader: WireReader, path: str
) -> tuple[list[ContentSegment], list[dict[str, Any]]]:
    """Return segments, and parts without a segment."""
    if content is None:
        return [], []
    if isinstance(content, str):
        segment = reader.build(lambda: ContentSegment.of_text(content), path)
        return ([] if segment is None else [segment]), []
    if not isinstance(content, list):
        reader.add(path, f"must be a text or a list, not {type(content).__name__}")
        return [], []
    blocks = reader.objects(content, path)
    return reader.segments(blocks, lambda part, where: _segment(part, reader, where))


def _segment(part: dict[str, Any], reader: WireReader, path: str) -> ContentSegment | None:
    kind = part.get("type")
    inner = part.get(kind) if isinstance(kind, str) else None
    fields = unknown_fields(part, "type", str(kind))
    if kind == "text" and isinstance(inner, str):
        return _build(reader, path, fields, "text", text=inner)
    if kind == "refusal" and isinstance(inner, str) and not fields:
        return _build(reader, path, {"type": "refusal"}, "text", text=inner)
    if kind == "image_url" and isinstance(inner, dict) and isinstance(inner.get("url"), str):
        return _image_segment(inner, fields, reader, path)
    if kind == "file" and isinstance(inner, dict) and set(inner) <= {"filename", "file_data"}:
        data, mime = split_url(str(inner.get("file_data")))
        if is_document(mime) and isinstance(inner.get("filename"), (str, NoneType)):
            extra = {**named(inner.get("filename"), mime), **reader.extra(fields=fields)}
            return reader.build(
                lambda: ContentSegment("file", data=data, mime_type=mime, extra=extra), f"{path}file."
            )
    is_audio = kind == "input_audio" and isinstance(inner, dict) and set(inner) == {"data", "format"}
    if is_audio and isinstance(inner, dict):
        mime = _AUDIO_TYPES.get(str(inner["format"]))
        if mime is not None:
            return _build(reader, path, fields, "audio", data=inner["data"], mime_type=mime)
    return None


def _image_segment(
    inner: dict[str, Any], fields: dict[str, Any], reader: WireReader, path: str
) -> ContentSegment | None:
    if not set(inner) <= {"url", _DETAIL}:
        return None
    data, mime = split_url(inner["url"])
    extra = unknown_fields(inner, "url") | reader.extra(fields=fields)
    return reader.build(lambda: ContentSegment("image", data=data, mime_type=mime, extra=extra), path)


def _build(
    reader: WireReader, path: str, fields: dict[str, Any], kind: Any, **payload: Any
) -> ContentSegment | None:
    return reader.build(lambda: ContentSegment(kind, **payload, extra=reader.extra(fields=fields)), path)
