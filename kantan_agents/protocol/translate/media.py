"""Images, sound and films: a URL, or base64 with its type."""

from __future__ import annotations

import re

import attrs

from kantan_agents.protocol.types import ContentSegment

_DATA_URL = re.compile(r"data:(?P<mime>[^;,]+);base64,", re.IGNORECASE)


@attrs.frozen
class Media:
    """Where the data of a segment is: in ``url``, or in ``base64``; never in both."""

    mime: str | None
    url: str | None = None
    base64: str | None = None

    @classmethod
    def of(cls, segment: ContentSegment) -> Media:
        """Return that of an image, audio or video segment; a base64 data URL is base64."""
        data = segment.data or ""
        match = _DATA_URL.match(data)
        if match and segment.mime_type in (None, match["mime"]):
            return cls(match["mime"], base64=data[match.end() :])
        if segment.is_url:
            return cls(segment.mime_type, url=data)
        return cls(segment.mime_type, base64=data)

    @property
    def data_url(self) -> str:
        """It as one URL."""
        return self.url or f"data:{self.mime};base64,{self.base64}"


def split_url(url: str) -> tuple[str, str | None]:
    """Return the data and the type of a URL: base64 of a base64 data URL, the URL itself of any other."""
    match = _DATA_URL.match(url)
    return (url[match.end() :], match["mime"]) if match else (url, None)
