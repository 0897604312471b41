"""Separates shared content, and packs the rest of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from kantan_agents.traces.capture.canonical import decode
from kantan_agents.traces.capture.encoding import encoder
from kantan_agents.traces.capture.reading import text_of_items


def _refuse(value: Any) -> Any:
    raise TypeError(type(value).__name__)


_encode = encoder(_refuse)

# Longer items of a conversation are shared, because later runs have them too.
_LONG_ITEM: Final = 200


class Shared:
    """A content item that records share, such as a prompt; ``stored`` is the recorder's form."""

    # Not attrs, which msgspec would encode by itself.
    __slots__ = ("kind", "stored", "value")

    def __init__(self, kind: str, value: str | bytes) -> None:
        self.kind = kind
        self.value = value
        self.stored: Any = None

    @property
    def packed(self) -> bytes:
        """The item as JSON."""
        return self.value if isinstance(self.value, bytes) else _encode(self.value)


class PackedRun(NamedTuple):
    """A record whose ``own`` part has indexes into ``shared``."""

    own: bytes
    shared: tuple[Shared, ...]


def pack(data: Mapping[str, Any]) -> PackedRun:
    """Return the stored form of a record.

    It may contain ``Shared``, ``msgspec.Raw``, a ``datetime`` as start and unrounded seconds.
    """
    own = {
        **data,
        "model_calls": [_rounded(call) for call in data["model_calls"]],
        "tool_calls": [_rounded(call) for call in data["tool_calls"]],
    }
    if isinstance(own["started_at"], datetime):
        own["started_at"] = own["started_at"].isoformat()
    if isinstance(own.get("output"), str) and own["output"] == _last_answer(own["model_calls"]):
        del own["output"]
        own["output_is_answer"] = True  # as in most runs
    places: dict[int, int] = {}
    shared: list[Shared] = []

    def place(value: Any) -> int:
        if not isinstance(value, Shared):
            raise TypeError(type(value).__name__)
        found = places.setdefault(id(value), len(shared))
        if found == len(shared):
            shared.append(value)
        return found

    return PackedRun(encoder(place)(_rounded(own)), tuple(shared))


def _rounded(data: Mapping[str, Any]) -> dict[str, Any]:
    rounded = dict(data)
    for name in ("at", "seconds"):
        if rounded.get(name) is not None:
            rounded[name] = round(rounded[name], 6)
    return rounded


def _last_answer(model_calls: Sequence[Mapping[str, Any]]) -> str | None:
    for call in reversed(model_calls):
        if call.get("answer") is not None:
            return text_of_items([decode(packed_item(item)) for item in call["answer"]["output"]])
    return None


def shared_item(packed: bytes) -> Shared | msgspec.Raw:
    """Share an item of a conversation if it is long."""
    return Shared("item", packed) if len(packed) > _LONG_ITEM else msgspec.Raw(packed)


def packed_item(item: Shared | msgspec.Raw) -> bytes:
    """Return the argument of ``shared_item``."""
    return item.packed if isinstance(item, Shared) else bytes(item)
