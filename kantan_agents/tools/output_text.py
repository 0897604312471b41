"""A tool's output as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agents.tool import ToolOutputFileContent, ToolOutputImage, ToolOutputText

from kantan_agents.models.structured import json_data

_KINDS = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)
_FIELDS = {"text": ("text",), "image": ("image_url", "file_id"), "file": ("file_data", "file_url", "file_id")}
_BLOCKS = frozenset({"audio", "resource", "resource_link"})


def tool_output_text(output: Any, *, from_server: bool = False) -> str:
    """Return text blocks, one a line, and descriptions of other content in brackets.

    With ``from_server``, the SDK has written audio, resources and links as JSON strings.
    """
    if output is None or isinstance(output, str):
        return output or ""
    parts = output if isinstance(output, (list, tuple)) else [output]
    if parts and all(map(_is_content, parts)):
        return "\n".join(_part_text(_as_dict(part), from_server=from_server) for part in parts)
    data = json_data(output)
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def _is_content(part: Any) -> bool:
    if isinstance(part, _KINDS):
        return True
    if not isinstance(part, dict) or not isinstance(kind := part.get("type"), str):
        return False
    return any(isinstance(part.get(field), str) for field in _FIELDS.get(kind, ()))


def _as_dict(part: Any) -> Mapping[str, Any]:
    return part if isinstance(part, dict) else vars(part)


def _part_text(part: Mapping[str, Any], *, from_server: bool) -> str:
    if part["type"] == "text":
        text = str(part["text"])
        return _block_text(text) if from_server and text.startswith("{") else text
    if part["type"] == "image":
        return _described("image", _media_type(part.get("image_url")))
    return _described("file", part.get("filename"))


def _block_text(text: str) -> str:
    try:
        block = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(block, dict) or block.get("type") not in _BLOCKS:
        return text
    resource = block.get("resource")
    if block["type"] == "audio":
        return _described("audio", _mime_of(block))
    if block["type"] == "resource_link":
        return _described("resource", block.get("uri"), block.get("name"))
    if not isinstance(resource, dict):
        return text
    if isinstance(resource.get("text"), str):
        return str(resource["text"])
    return _described("file", resource.get("uri"), _mime_of(resource))


def _mime_of(block: Mapping[str, Any]) -> Any:
    return block.get("mime_type", block.get("mimeType"))  # mcp 2 and 1


def _media_type(url: Any) -> str | None:
    if not isinstance(url, str) or not url.startswith("data:"):
        return None
    return url[len("data:") :].partition(",")[0].partition(";")[0]


def _described(*words: Any) -> str:
    return f"[{' '.join(word for word in words if isinstance(word, str) and word)}]"
