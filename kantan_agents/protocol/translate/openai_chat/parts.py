"""Parts of the content of a message in chat completions."""

from __future__ import annotations

from typing import Any

from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.media import Media, split_url
from kantan_agents.protocol.translate.reading import Reading, unknown
from kantan_agents.protocol.types import ContentSegment

_SOUNDS = {"audio/wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}
_TYPES = {"wav": "audio/wav", "mp3": "audio/mp3"}
_DETAIL = "detail"


def part_to_chat(segment: ContentSegment, role: str, losses: Losses, path: str) -> list[dict[str, Any]]:
    """Return a segment that is no call as parts, with the unknown ones around it."""
    extra = {
        name: value for name, value in segment.extra.items() if (segment.type, name) != ("image", _DETAIL)
    }
    own = losses.own(extra, path, "fields", "before", "after")
    part: dict[str, Any] = {}
    if segment.type == "text":
        part = {"type": "text", "text": segment.text}
        if own.get("fields") == {"type": "refusal"}:
            own, part = {**own, "fields": {}}, {"type": "refusal", "refusal": segment.text}
    elif role == "user" and segment.type == "image":
        part = _image(segment, losses, path)
    elif role == "user" and segment.type == "audio":
        part = _sound(segment, losses, path)
    else:
        losses.add(path[:-1], f"a message of the role {role} cannot hold {segment.type}")
    part = losses.with_fields(part, own, path)
    return [*losses.blocks(own, "before", path), part, *losses.blocks(own, "after", path)]


def _image(segment: ContentSegment, losses: Losses, path: str) -> dict[str, Any]:
    media = Media.of(segment)
    if media.url is not None and media.mime is not None:
        losses.add(f"{path}mimeType", "has no place beside a URL")
    if media.url is None and media.mime is None:
        losses.add(f"{path}mimeType", "is missing, and base64 is sent with its type")
    detail = {_DETAIL: segment.extra[_DETAIL]} if _DETAIL in segment.extra else {}
    return {"type": "image_url", "image_url": {"url": media.data_url, **detail}}


def _sound(segment: ContentSegment, losses: Losses, path: str) -> dict[str, Any]:
    media = Media.of(segment)
    if media.url is not None:
        losses.add(f"{path}data", "is a URL, and audio must be base64")
    if media.mime not in _SOUNDS:
        losses.add(f"{path}mimeType", f"must be {' or '.join(_SOUNDS)}, not {media.mime!r}"[:200])
    sound = {"data": media.base64, "format": _SOUNDS.get(media.mime or "")}
    return {"type": "input_audio", "input_audio": sound}


def parts_from_chat(
    content: Any, reading: Reading, path: str
) -> tuple[list[ContentSegment], list[dict[str, Any]]]:
    """Return the segments of the content of a message, and the parts that belong to none of them."""
    if content is None:
        return [], []
    if isinstance(content, str):
        segment = reading.value(lambda: ContentSegment.of_text(content), path)
        return ([] if segment is None else [segment]), []
    if not isinstance(content, list):
        reading.add(path, f"must be a text or a list, not {type(content).__name__}")
        return [], []
    blocks = reading.objects(content, path)
    return reading.gathered(blocks, lambda part, where: _segment(part, reading, where))


def _segment(part: dict[str, Any], reading: Reading, path: str) -> ContentSegment | None:
    kind = part.get("type")
    inner = part.get(kind) if isinstance(kind, str) else None
    fields = unknown(part, "type", str(kind))
    if kind == "text" and isinstance(inner, str):
        return _made(reading, path, fields, "text", text=inner)
    if kind == "refusal" and isinstance(inner, str) and not fields:
        return _made(reading, path, {"type": "refusal"}, "text", text=inner)
    if kind == "image_url" and isinstance(inner, dict) and isinstance(inner.get("url"), str):
        return _picture(inner, fields, reading, path)
    is_sound = kind == "input_audio" and isinstance(inner, dict) and set(inner) == {"data", "format"}
    if is_sound and isinstance(inner, dict):
        mime = _TYPES.get(str(inner["format"]))
        if mime is not None:
            return _made(reading, path, fields, "audio", data=inner["data"], mime_type=mime)
    return None


def _picture(
    inner: dict[str, Any], fields: dict[str, Any], reading: Reading, path: str
) -> ContentSegment | None:
    if not set(inner) <= {"url", _DETAIL}:
        return None
    data, mime = split_url(inner["url"])
    extra = unknown(inner, "url") | reading.kept(fields=fields)
    return reading.value(lambda: ContentSegment("image", data=data, mime_type=mime, extra=extra), path)


def _made(
    reading: Reading, path: str, fields: dict[str, Any], kind: Any, **payload: Any
) -> ContentSegment | None:
    return reading.value(lambda: ContentSegment(kind, **payload, extra=reading.kept(fields=fields)), path)
