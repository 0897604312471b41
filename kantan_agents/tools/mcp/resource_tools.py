"""The tools for resources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from mcp.types import CallToolResult
from pydantic import AnyUrl

LIST_RESOURCES = "list_resources"
READ_RESOURCE = "read_resource"

_LISTED = ("uri", "uriTemplate", "name", "title", "description", "mimeType", "size")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):[^\s\\]+")
_SEPARATOR = re.compile(r"[/\\?#]")
_NORMALIZED_SCHEMES = ("file", "ftp", "http", "https", "ws", "wss")  # by each library that reads URLs
# Letters, digits, `-`, `.`, `_` and `~` need no encoding; the others are control characters.
_NEEDLESSLY_ENCODED = re.compile(
    r"%(2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7[EF]|[01][0-9A-F])", re.IGNORECASE
)
RESOURCE_TOOLS: tuple[dict[str, Any], ...] = (
    {
        "name": LIST_RESOURCES,
        "description": "List the resources of this server, such as files and records, and the templates of "
        "URIs of further ones. Read them with read_resource.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "cursor": {"type": "string", "description": "The next_cursor of the previous page."}
            },
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": READ_RESOURCE,
        "description": "Read a resource of this server.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "uri": {"type": "string", "description": "The URI, as list_resources returns it."},
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Number of characters to skip, to read the rest of a long text.",
                },
            },
            "required": ["uri"],
        },
        "annotations": {"readOnlyHint": True},
    },
)


def shown_content(
    content: Mapping[str, Any], offset: int, max_characters: int, max_image_bytes: int
) -> list[dict[str, Any]]:
    """Return text, an image, or a description."""
    if isinstance(content.get("text"), str):
        text, more = cut(content["text"], offset, max_characters)
        end = offset + len(text)
        rest = f"The text goes on: {more} characters are not shown. Read them with offset {end}."
        return [text_content(text), *([text_content(rest)] if more else [])]
    data, kind = str(content.get("blob", "")), str(content.get("mimeType", "application/octet-stream"))
    size = len(data) * 3 // 4
    if kind.startswith("image/") and size <= max_image_bytes:
        return [{"type": "image", "data": data, "mimeType": kind}]
    return [
        text_content(f"The resource {content.get('uri')} is {kind} of {size} bytes, which cannot be shown.")
    ]


def cut(text: str, offset: int, length: int) -> tuple[str, int]:
    """Return a part, and the number of later characters."""
    end = offset + length
    return text[offset:end], max(len(text) - end, 0)


def listed_entry(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields for the model."""
    return {key: one[key] for key in _LISTED if key in one}


def why_unsafe(uri: Any) -> str | None:
    """Return why a URI is unsafe.

    Rules compare URIs as strings. A string that a server or library reads as another URI would bypass them.
    """
    found = _SCHEME.fullmatch(uri) if isinstance(uri, str) and uri.isprintable() else None
    if found is None:
        return (
            "uri must be a URI as list_resources returns it: no white space, control characters or \\, and a "
            "scheme in lower case."
        )
    decoded = unquote(unquote(uri))  # a server behind the server may decode once more
    if any(part in (".", "..") for one in (unquote(uri), decoded) for part in _SEPARATOR.split(one)):
        return "uri must not contain the path segments . and .."
    if _NEEDLESSLY_ENCODED.search(uri):
        return "uri must not contain letters, digits, -, ., _, ~ or control characters as % and a number."
    if found[1] in _NORMALIZED_SCHEMES and not _is_normal(uri):
        return "uri must have // after the scheme, then a host in lower case, without the usual port."
    return None


def _is_normal(uri: str) -> bool:
    """Return whether URL libraries leave a URI unchanged except for encoding."""
    try:
        normal = unquote(str(AnyUrl(uri)))
    except ValueError:
        return False
    return normal in (unquote(uri), f"{unquote(uri)}/")


def text_content(text: str) -> dict[str, Any]:
    """Return text as content."""
    return {"type": "text", "text": text}


def refusal(reason: str) -> CallToolResult:
    """Return the answer to a call with wrong arguments."""
    return tool_result([text_content(reason)], is_error=True)


def tool_result(content: list[dict[str, Any]], *, is_error: bool = False) -> CallToolResult:
    """Return content as the result of a call."""
    return CallToolResult.model_validate({"content": content, "isError": is_error})
