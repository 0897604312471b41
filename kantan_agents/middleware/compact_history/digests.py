"""Recognises conversations that begin alike."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kantan_agents.traces.capture.canonical import canonical

_SIZE = 20


def digests_of(items: Iterable[Any]) -> Iterator[bytes]:
    """Yield for each item a digest of the conversation up to and with it."""
    so_far = b""
    for item in items:
        so_far = hashlib.blake2b(so_far + _content_of(item), digest_size=_SIZE).digest()
        yield so_far


def _content_of(item: Any) -> bytes:
    try:
        return canonical(_without_ids(item))
    except (TypeError, ValueError):  # not JSON data, which the model will refuse or convert
        return repr(item).encode("utf-8", "surrogatepass")


def _without_ids(item: Any) -> Any:
    """Return an item without what says only how it is stored, which a session may leave out."""
    if not isinstance(item, Mapping) or not ("role" in item or "call_id" in item):
        return item
    return {name: value for name, value in item.items() if name not in ("id", "status") and value is not None}
