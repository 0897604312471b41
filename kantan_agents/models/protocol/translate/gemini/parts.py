"""Content parts of the Gemini API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.translate.gemini.tools import NAME
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.media import Media, is_document
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields
from kantan_agents.models.protocol.types import MEDIA, ContentSegment, ProviderToolCall

_TYPES_BY_EXTENSION: Final = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
    "heic": "image/heic", "wav": "audio/wav", "mp3": "audio/mp3", "aac": "audio/aac", "ogg": "audio/ogg",
    "flac": "audio/flac", "mp4": "video/mp4", "mov": "video/mov", "webm": "video/webm", "mpeg": "video/mpeg",
    "pdf": "application/pdf", "txt": "text/plain", "md": "text/md", "csv": "text/csv", "html": "text/html",
    "json": "application/json", "xml": "text/xml",
}  # fmt: skip


def parts_of(segment: ContentSegment, losses: Losses, path: str) -> list[dict[str, Any]]:
    """Return a segment as a part, with unknown parts around it."""
    own = losses.format_extra(segment.extra, path, "fields", "before", "after")
    part: dict[str, Any] = {}
    if segment.type == "text":
        part = {"text": segment.text}
    elif segment.tool_call is not None:
        part = {"functionCall": _function_call(segment.tool_call, losses, f"{path}toolCall.")}
    elif segment.type in MEDIA:
        part = media_part(segment, losses, path)
    else:
        losses.add(path[:-1], f"a content cannot hold {segment.type}")
    part = losses.with_fields(part, own, path)
    return [*losses.blocks(own, "before", path), part, *losses.blocks(own, "after", path)]


def _function_call(call: ProviderToolCall, losses: Losses, path: str) -> dict[str, Any]:
    if not isinstance(call.args, Mapping):
        losses.add(f"{path}args", f"must be an object, not {type(call.args).__name__}")
    name = losses.name(call.name, NAME, f"{path}name")
    written = {"id": call.id, "name": name, "args": plain(call.args)}
    return losses.with_fields(written, losses.format_extra(call.extra, path, "fields"), path)


def media_part(segment: ContentSegment, losses: Losses, path: str) -> dict[str, Any]:
    """Return a media segment as a part."""
    media = Media.of(segment)
    mime = media.mime
    if mime is None and media.url is not None:
        mime = _type_by_extension(media.url)
    if mime is None:
        losses.add(f"{path}mimeType", "is missing, and the format needs it")
    elif segment.type == "file":
        if not is_document(mime):
            losses.add(f"{path}mimeType", f"is {mime!r}, which is not that of a file"[:200])
    elif not mime.startswith(f"{segment.type}/"):
        losses.add(f"{path}mimeType", f"must begin with {segment.type}/, not be {mime!r}"[:200])
    if media.url is not None:
        return {"fileData": {"mimeType": mime, "fileUri": media.url}}
    return {"inlineData": {"mimeType": mime, "data": media.base64}}


def _type_by_extension(url: str) -> str | None:
    # mimetypes would read files and block the event loop.
    try:
        path = urlsplit(url).path
    except ValueError:
        return None
    return _TYPES_BY_EXTENSION.get(path.rpartition(".")[2].lower())


def segment_of(part: dict[str, Any], reader: WireReader, path: str) -> ContentSegment | None:
    """Return a part's segment, if the protocol has one."""
    if part.get("thought"):
        return None
    text = part.get("text")
    if isinstance(text, str):
        extra = reader.extra(fields=unknown_fields(part, "text"))
        return reader.build(lambda: ContentSegment("text", text=text, extra=extra), path)
    call = part.get("functionCall")
    if isinstance(call, dict):
        return _call(part, call, reader, path)
    for name, payload in (("inlineData", "data"), ("fileData", "fileUri")):
        data = part.get(name)
        if isinstance(data, dict) and set(data) == {"mimeType", payload}:
            return _media(data["mimeType"], data[payload], unknown_fields(part, name), reader, path)
    return None


def _call(part: dict[str, Any], call: dict[str, Any], reader: WireReader, path: str) -> ContentSegment | None:
    inside = f"{path}functionCall."
    name = reader.required(call, "name", str, inside)
    call_id = reader.field(call, "id", str, inside) or ""
    args = {} if call.get("args") is None else call["args"]
    inner = reader.extra(fields=unknown_fields(call, "id", "name", "args"))
    outer = reader.extra(fields=unknown_fields(part, "functionCall"))
    if name is None:
        return None
    return reader.build(
        lambda: ContentSegment(
            "tool_call", tool_call=ProviderToolCall(name, args, call_id, extra=inner), extra=outer
        ),
        path,
    )


def _media(
    mime: Any, data: Any, fields: dict[str, Any], reader: WireReader, path: str
) -> ContentSegment | None:
    kind: Any = mime.partition("/")[0] if isinstance(mime, str) else ""
    if kind not in MEDIA and is_document(kind):
        kind = "file"
    if kind not in MEDIA:
        return None
    extra = reader.extra(fields=fields)
    return reader.build(lambda: ContentSegment(kind, data=data, mime_type=mime, extra=extra), path)
