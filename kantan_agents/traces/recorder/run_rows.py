"""Converts the record of a run to its stored form."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from kantan_agents.support.secrets import may_contain_secret
from kantan_agents.traces.capture.canonical import canonical, digest, ordered
from kantan_agents.traces.capture.captured import CapturedRun
from kantan_agents.traces.capture.shared import Shared, pack
from kantan_agents.traces.recorder.masking import mask_data
from kantan_agents.traces.recorder.plain_json import decode, encode

_MOST_KNOWN: Final = 4_096
_MOST_BYTES: Final = 16 * 1024 * 1024
TRUNCATED: Final = "long texts were truncated: KANTAN_LLM_TRACING_MAX_CHARS is set"


class Content(NamedTuple):
    """A stored content item; ``hash`` is the SHA-256 of its canonical JSON.

    ``body`` is that JSON; empty if it consists of ``parts``.
    """

    hash: bytes
    kind: str
    body: str
    parts: tuple[Content, ...] = ()


class RunRow(NamedTuple):
    """A stored record, before its items have ids."""

    trace_id: str
    run_id: bytes
    contents: tuple[Content, ...]
    body: str


class RunRows:
    """Builds rows, and remembers shared items."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str | bytes], Content] = {}
        self._bytes = 0

    def row(self, captured: CapturedRun, *, limited: bool) -> RunRow:
        """Return the masked row."""
        packed = pack(captured.data)
        body = packed.own.decode()
        if limited or may_contain_secret(body):
            found = decode(body)
            data = mask_data(found)
            _mark_changed(data, found)
            if limited:
                data["missing"] = [*data.get("missing", ()), TRUNCATED]
            body = _text(data)
        contents = tuple(self._content(content, limited=limited) for content in packed.shared)
        return RunRow(captured.trace_id, bytes.fromhex(captured.id), contents, body)

    def _content(self, shared: Shared, *, limited: bool) -> Content:
        if limited:
            return _masked_content(shared, limited=True)
        if shared.stored is None:
            shared.stored = self._known_content(shared)
        content: Content = shared.stored
        return content

    def _known_content(self, shared: Shared) -> Content:
        key = (shared.kind, shared.value)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_KNOWN or self._bytes > _MOST_BYTES:
                self._known.clear()
                self._bytes = 0
            known = self._known[key] = _masked_content(shared, limited=False)
            self._bytes += 2 * len(shared.value)  # with the content
        return known


def _masked_content(shared: Shared, *, limited: bool) -> Content:
    packed = shared.packed
    data = decode(packed)
    if limited or may_contain_secret(packed.decode()):
        data = mask_data(data)
    return _content_of(shared.kind, data)


def _mark_changed(data: dict[str, Any], original: dict[str, Any]) -> None:
    for call, before in zip(data["tool_calls"], original["tool_calls"], strict=True):
        if any(call.get(name) != before.get(name) for name in ("arguments", "received")):
            call["has_other_arguments"] = True


def _content_of(kind: str, data: Any) -> Content:
    text = (ordered if kind == "rules" else canonical)(data)
    if kind == "tools":
        return Content(digest(text), kind, "", tuple(_content_of("tool", tool) for tool in data))
    # The hash ignores the order of keys, except in rules; users and models see the first order.
    return Content(digest(text), kind, _text(data))


def _text(data: Any) -> str:
    text = encode(data)
    # Half a surrogate pair has an escape in JSON, but no UTF-8.
    return text if text.isascii() or _is_utf8(text) else json.dumps(data)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
