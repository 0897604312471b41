"""``Media``: the payload of an image, audio or video segment as a URL, or as base64 with its media type."""

from __future__ import annotations

import re

import attrs

from kantan_agents.protocol.types import ContentSegment

_DATA_URL = re.compile(r"data:(?P<mime>[^;,]+);base64,", re.IGNORECASE)


@attrs.frozen
class Media:
    """The payload of a media segment; either ``url`` or ``base64`` is set."""

    mime: str | None
    url: str | None = None
    base64: str | None = None

    @classmethod
    def of(cls, segment: ContentSegment) -> Media:
        """Return the payload of an image, audio or video segment; a base64 data URL counts as base64."""
        data = segment.data or ""
        match = _DATA_URL.match(data)
        if match and segment.mime_type in (None, match["mime"]):
            return cls(match["mime"], base64=data[match.end() :])
        if segment.is_url:
            return cls(segment.mime_type, url=data)
        return cls(segment.mime_type, base64=data)

    @property
    def data_url(self) -> str:
        """The payload as one URL; base64 becomes a data URL."""
        return self.url or f"data:{self.mime};base64,{self.base64}"


def split_url(url: str) -> tuple[str, str | None]:
    """Return the base64 and the media type of a base64 data URL; any other URL unchanged, with None."""
    match = _DATA_URL.match(url)
    return (url[match.end() :], match["mime"]) if match else (url, None)
