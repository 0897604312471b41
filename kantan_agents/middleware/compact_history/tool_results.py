"""Results of tools as stubs, or cut in the middle; copies, never changed in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

STUB = "[tool result removed to save space: {count:,} characters]"
CUT = "[{count:,} characters removed here to save space]"
_STUB_START = STUB.split("{", maxsplit=1)[0]

_TEXTS = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "apply_patch_call_output",
        "mcp_call",
    }
)
_SHELL = "shell_call_output"
_STREAMS = ("stdout", "stderr")


def can_be_shortened(item: Any) -> bool:
    """The API accepts no text instead of a screenshot or a list of found tools."""
    if not isinstance(item, Mapping):
        return False
    output = item.get("output")
    if item.get("type") == _SHELL:
        return isinstance(output, list) and all(isinstance(part, Mapping) for part in output)
    return item.get("type") in _TEXTS and isinstance(output, (str, list)) and bool(output)


def stub_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the result with a short note."""
    note = STUB.format(count=_characters(item["output"]))
    if item["type"] == _SHELL:
        first = item["output"][0] if item["output"] else {}
        return {**_without_id(item), "output": [{**first, "stdout": note, "stderr": ""}]}
    return {**_without_id(item), "output": note}


def cut_item(item: Mapping[str, Any], share: float) -> dict[str, Any]:
    """Cut each string of the result in the middle."""
    return {**_without_id(item), "output": _each_text(item["output"], lambda text: cut_text(text, share))}


def cut_text(text: str, share: float) -> str:
    """Cut the middle, with a note; the whole text if that is shorter."""
    kept = max(int(len(text) * share), 0)
    note = CUT.format(count=len(text) - kept)
    if len(text) - kept <= len(note) + 2:
        return text
    head = kept - kept // 2
    return f"{text[:head]}\n{note}\n{text[len(text) - kept // 2 :]}"


def _without_id(item: Mapping[str, Any]) -> dict[str, Any]:
    # A result's id refers to the text stored at the provider. A hosted call requires its id.
    return {name: value for name, value in item.items() if name != "id" or item["type"] == "mcp_call"}


def _each_text(output: Any, change: Callable[[str], str]) -> Any:
    if isinstance(output, str):
        return change(output)
    return [
        {
            name: change(value) if name in ("text", *_STREAMS) and isinstance(value, str) else value
            for name, value in part.items()
        }
        if isinstance(part, Mapping)
        else part
        for part in output
    ]


def _characters(output: Any) -> int:
    lengths: list[int] = []

    def count(text: str) -> str:
        lengths.append(len(text))
        return text

    _each_text(output, count)
    return sum(lengths)


def is_stub(item: Mapping[str, Any]) -> bool:
    """Whether a replacement has a note instead of its result."""
    output = item["output"]
    if isinstance(output, list) and output and isinstance(output[0], Mapping):
        output = output[0].get("stdout") if len(output) == 1 else None
    return isinstance(output, str) and output.startswith(_STUB_START) and len(output) < len(STUB) + 20
