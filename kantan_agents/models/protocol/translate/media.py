"""``Media``: the payload of an image, audio or video segment as a URL, or as base64 with its media type."""

from __future__ import annotations

import re
from typing import Any

import attrs

from kantan_agents.models.protocol.types import MEDIA, ContentSegment

FILENAME = "filename"
"""The key of ``extra`` that has the name of a file."""

# Browsers and mail programs add the name and the charset, which say nothing that is needed.
_DATA_URL = re.compile(
    r"data:(?P<mime>[^;,]+)(?:;charset=(?:utf-8|us-ascii)|;(?:file)?name=[^;,]*)*;base64,", re.IGNORECASE
)


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


def is_document(mime: str | None) -> bool:
    """Return whether the content of this type belongs to a segment of type file: not an image or a sound."""
    kind = (mime or "").partition("/")[0].lower()
    return bool(kind) and kind not in MEDIA


def extra_of_file(segment: ContentSegment) -> dict[str, Any]:
    """Return ``extra`` of a segment without the name of a file, which every format treats by itself."""
    is_named = segment.type == "file" and isinstance(segment.extra.get(FILENAME), str)
    return {name: value for name, value in segment.extra.items() if not (is_named and name == FILENAME)}


def filename_of(segment: ContentSegment) -> str | None:
    """Return the name of a file; None if it has no name."""
    name = segment.extra.get(FILENAME)
    return name if isinstance(name, str) else None


def default_filename(mime: str | None) -> str:
    """Return the name that is sent for a file without a name, where a format needs one."""
    return (mime or "").replace("/", ".")


def named(name: object, mime: str | None = None) -> dict[str, Any]:
    """Return ``extra`` with the name of a file, unless there is no name or it is the default one."""
    is_name = isinstance(name, str) and name and name != default_filename(mime)
    return {FILENAME: name} if is_name else {}


def split_url(url: str) -> tuple[str, str | None]:
    """Return the base64 and the media type of a base64 data URL; any other URL unchanged, with None."""
    match = _DATA_URL.match(url)
    return (url[match.end() :], match["mime"]) if match else (url, None)
