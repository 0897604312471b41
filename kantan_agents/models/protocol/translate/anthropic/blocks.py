"""Content blocks of Anthropic's Messages API."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.translate.anthropic.tools import NAME
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.media import Media, extra_of_file, filename_of, named
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields
from kantan_agents.models.protocol.types import ContentSegment, ProviderToolCall

IDS = re.compile(r"[a-zA-Z0-9_-]+")
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_PDF: Final = "application/pdf"
_TEXT: Final = "text/plain"


def blocks_of(segment: ContentSegment, role: str, losses: Losses, path: str) -> list[dict[str, Any]]:
    """Return a segment as a block, with unknown blocks around it."""
    own = losses.format_extra(extra_of_file(segment), path, "fields", "before", "after")
    block: dict[str, Any] = {}
    if segment.type == "text":
        block = {"type": "text", "text": segment.text}
    elif segment.tool_call is not None:
        block = _tool_use(segment.tool_call, losses, path)
    elif segment.type == "image" and role in ("user", "tool"):
        block = {"type": "image", "source": _source(segment, losses, path)}
    elif segment.type == "file" and role in ("user", "tool"):
        name = filename_of(segment)
        source = _document_source(segment, losses, path)
        block = {"type": "document", "source": source, **({} if name is None else {"title": name})}
    else:
        losses.add(path[:-1], f"a message of the role {role} cannot hold {segment.type}")
    block = losses.with_fields(block, own, path)
    return [*losses.blocks(own, "before", path), block, *losses.blocks(own, "after", path)]


def surrounding_blocks(segment: ContentSegment, losses: Losses, path: str) -> list[dict[str, Any]]:
    """Return unknown blocks around a segment."""
    own = losses.format_extra(segment.extra, path, "fields", "before", "after")
    return [*losses.blocks(own, "before", path), *losses.blocks(own, "after", path)]


def _tool_use(call: ProviderToolCall, losses: Losses, path: str) -> dict[str, Any]:
    losses.format_extra(call.extra, f"{path}toolCall.")
    if not isinstance(call.args, Mapping):
        losses.add(f"{path}toolCall.args", f"must be an object, not {type(call.args).__name__}")
    checked_id(call.id, losses, f"{path}toolCall.id")
    name = losses.name(call.name, NAME, f"{path}toolCall.name")
    return {"type": "tool_use", "id": call.id, "name": name, "input": plain(call.args)}


def checked_id(call_id: str | None, losses: Losses, path: str) -> str | None:
    """Return a call's id; an invalid id is a loss."""
    if not IDS.fullmatch(call_id or ""):
        losses.add(path, f"is {call_id!r}, but an id must match {IDS.pattern}"[:200])
    return call_id


def _source(segment: ContentSegment, losses: Losses, path: str) -> dict[str, Any]:
    media = Media.of(segment)
    if media.url is not None:
        if media.mime is not None:
            losses.add(f"{path}mimeType", "is not allowed together with a URL")
        return {"type": "url", "url": media.url}
    if media.mime not in _IMAGES:
        losses.add(f"{path}mimeType", f"must be one of {', '.join(_IMAGES)}, not {media.mime!r}"[:200])
    return {"type": "base64", "media_type": media.mime, "data": media.base64}


def segment_of(block: dict[str, Any], reader: WireReader, path: str) -> ContentSegment | None:
    """Return a block's segment, if the protocol has one."""
    kind = reader.required(block, "type", str, path)
    if kind == "text":
        text = reader.required(block, "text", str, path)
        extra = reader.extra(fields=unknown_fields(block, "type", "text"))
        return reader.build(lambda: ContentSegment("text", text=text or "", extra=extra), path)
    if kind == "tool_use":
        return _call(block, reader, path)
    source = block.get("source")
    if kind == "image" and isinstance(source, Mapping):
        return _image(block, source, reader, path)
    if kind == "document" and isinstance(source, Mapping):
        payload = _document_payload(source)
        title = named(block.get("title"))
        known = ("type", "source", *(("title",) if title else ()))
        extra = {**title, **reader.extra(fields=unknown_fields(block, *known))}
        if payload is not None:
            return reader.build(lambda: ContentSegment("file", **payload, extra=extra), path)
    return None


def _call(block: dict[str, Any], reader: WireReader, path: str) -> ContentSegment | None:
    name = reader.required(block, "name", str, path)
    call_id = reader.field(block, "id", str, path) or ""
    args = block.get("input", {})
    extra = reader.extra(fields=unknown_fields(block, "type", "id", "name", "input"))
    if name is None:
        return None
    return reader.build(
        lambda: ContentSegment("tool_call", tool_call=ProviderToolCall(name, args, call_id), extra=extra),
        path,
    )


def _image(
    block: dict[str, Any], source: Mapping[str, Any], reader: WireReader, path: str
) -> ContentSegment | None:
    payload: dict[str, Any] = {}
    if source.get("type") == "base64" and set(source) == {"type", "media_type", "data"}:
        payload = {"data": source["data"], "mime_type": source["media_type"]}
    elif source.get("type") == "url" and set(source) == {"type", "url"}:
        payload = {"data": source["url"]}
    else:
        return None
    extra = reader.extra(fields=unknown_fields(block, "type", "source"))
    return reader.build(lambda: ContentSegment("image", **payload, extra=extra), path)


def _document_source(segment: ContentSegment, losses: Losses, path: str) -> dict[str, Any]:
    media = Media.of(segment)
    if media.url is not None:
        if media.mime is not None:
            losses.add(f"{path}mimeType", "is not allowed together with a URL")
        return {"type": "url", "url": media.url}
    data = media.base64 or ""
    if media.mime == _TEXT:
        try:
            return {"type": "text", "media_type": _TEXT, "data": base64.b64decode(data).decode()}
        except UnicodeDecodeError:
            losses.add(f"{path}data", "is not a text in UTF-8")
    elif media.mime != _PDF:
        losses.add(f"{path}mimeType", f"must be {_PDF} or {_TEXT}, not {media.mime!r}"[:200])
    return {"type": "base64", "media_type": media.mime, "data": data}


def _document_payload(source: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the segment fields of a document's source, if possible."""
    kind, fields = source.get("type"), set(source)
    if kind == "url" and fields == {"type", "url"}:
        return {"data": source["url"]}
    if fields != {"type", "media_type", "data"} or not source["data"]:
        return None
    if kind == "base64" and source["media_type"] == _PDF:
        return {"data": source["data"], "mime_type": _PDF}
    if kind == "text" and source["media_type"] == _TEXT and isinstance(source["data"], str):
        return {"data": base64.b64encode(source["data"].encode()).decode(), "mime_type": _TEXT}
    return None
