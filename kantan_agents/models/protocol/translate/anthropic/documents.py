"""The source of a document block in Anthropic's Messages API: a PDF, a plain text, or a URL."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.media import Media
from kantan_agents.models.protocol.types import ContentSegment

PDF: Final = "application/pdf"
TEXT: Final = "text/plain"


def document_source(segment: ContentSegment, losses: Losses, path: str) -> dict[str, Any]:
    """Return the source of a document; a type that the API does not accept is a loss."""
    media = Media.of(segment)
    if media.url is not None:
        if media.mime is not None:
            losses.add(f"{path}mimeType", "is not allowed together with a URL")
        return {"type": "url", "url": media.url}
    data = media.base64 or ""
    if media.mime == TEXT:
        try:
            return {"type": "text", "media_type": TEXT, "data": base64.b64decode(data).decode()}
        except UnicodeDecodeError:
            losses.add(f"{path}data", "is not a text in UTF-8")
    elif media.mime != PDF:
        losses.add(f"{path}mimeType", f"must be {PDF} or {TEXT}, not {media.mime!r}"[:200])
    return {"type": "base64", "media_type": media.mime, "data": data}


def document_payload(source: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fields of a segment for the source of a document; None if there is no segment for it."""
    kind, fields = source.get("type"), set(source)
    if kind == "url" and fields == {"type", "url"}:
        return {"data": source["url"]}
    if fields != {"type", "media_type", "data"} or not source["data"]:
        return None
    if kind == "base64" and source["media_type"] == PDF:
        return {"data": source["data"], "mime_type": PDF}
    if kind == "text" and source["media_type"] == TEXT and isinstance(source["data"], str):
        return {"data": base64.b64encode(source["data"].encode()).decode(), "mime_type": TEXT}
    return None
