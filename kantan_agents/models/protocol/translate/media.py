"""``Media``: a media segment's URL or typed base64."""

from __future__ import annotations

import re
from typing import Any

import attrs

from kantan_agents.models.protocol.types import MEDIA, ContentSegment

FILENAME = "filename"
"""The key of ``extra`` with a file's name."""

# Browsers and mail programs add a useless name and charset.
_DATA_URL = re.compile(
    r"data:(?P<mime>[^;,]+)(?:;charset=(?:utf-8|us-ascii)|;(?:file)?name=[^;,]*)*;base64,", re.IGNORECASE
)


@attrs.frozen
class Media:
    """A media payload: either ``url`` or ``base64``."""

    mime: str | None
    url: str | None = None
    base64: str | None = None

    @classmethod
    def of(cls, segment: ContentSegment) -> Media:
        """Return a segment's payload."""
        data = segment.data or ""
        match = _DATA_URL.match(data)
        if match and segment.mime_type in (None, match["mime"]):
            return cls(match["mime"], base64=data[match.end() :])
        if segment.is_url:
            return cls(segment.mime_type, url=data)
        return cls(segment.mime_type, base64=data)

    @property
    def data_url(self) -> str:
        """The payload as a URL."""
        return self.url or f"data:{self.mime};base64,{self.base64}"


def is_document(mime: str | None) -> bool:
    """Return whether a type is for file segments."""
    kind = (mime or "").partition("/")[0].lower()
    return bool(kind) and kind not in MEDIA


def extra_of_file(segment: ContentSegment) -> dict[str, Any]:
    """Return ``extra`` without the file name."""
    is_named = segment.type == "file" and isinstance(segment.extra.get(FILENAME), str)
    return {name: value for name, value in segment.extra.items() if not (is_named and name == FILENAME)}


def filename_of(segment: ContentSegment) -> str | None:
    """Return a file's name, if any."""
    name = segment.extra.get(FILENAME)
    return name if isinstance(name, str) else None


def default_filename(mime: str | None) -> str:
    """Return a name for nameless files."""
    return (mime or "").replace("/", ".")


def named(name: object, mime: str | None = None) -> dict[str, Any]:
    """Return ``extra`` with a file's own name."""
    is_name = isinstance(name, str) and name and name != default_filename(mime)
    return {FILENAME: name} if is_name else {}


def split_url(url: str) -> tuple[str, str | None]:
    """Return base64 and media type of a base64 data URL; another URL, and None."""
    match = _DATA_URL.match(url)
    return (url[match.end() :], match["mime"]) if match else (url, None)
