"""Sets apart what many records have in common, and packs the rest of a record."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kantan_agents.capture.encoding import encoder


def _refuse(value: Any) -> Any:
    raise TypeError(type(value).__name__)


_encode = encoder(_refuse)

# What the objects take beside their texts.
_BYTES = 512
_BYTES_OF_CONTENT = 128

LONG_ITEM: Final = 200
"""An item of a conversation with more bytes is a content, because later runs have it too."""


class Shared:
    """A content that many records may have in common, such as a prompt, tools, settings or rules.

    Most are encoded once and then are part of many records as the same object.

    Attributes:
        kind: What it is.
        value: A text as it is; anything else as JSON.
        stored: What a recorder has made of it, which it makes once.
    """

    # No class of attrs, which msgspec would encode by itself.
    __slots__ = ("kind", "stored", "value")

    def __init__(self, kind: str, value: str | bytes) -> None:
        self.kind = kind
        self.value = value
        self.stored: Any = None

    @property
    def packed(self) -> bytes:
        """The content as JSON."""
        return self.value if isinstance(self.value, bytes) else _encode(self.value)


class PackedRun(NamedTuple):
    """A record with what records have in common apart.

    Attributes:
        own: The part that only this run has, as JSON. Where it has an index of ``shared``, the record has
            that content.
        shared: The contents.
    """

    own: bytes
    shared: tuple[Shared, ...]

    @property
    def size(self) -> int:
        """About how many bytes it takes, without what other records have too."""
        new = [len(content.value) for content in self.shared if content.stored is None]
        return len(self.own) + sum(new) + _BYTES + _BYTES_OF_CONTENT * len(new)


def pack(data: dict[str, Any]) -> PackedRun:
    """Return the record of a run as it is stored; nothing of ``data`` is needed any more.

    Args:
        data: The record as JSON data, in which contents are ``Shared``, and what was encoded before is
            ``msgspec.Raw``.
    """
    places: dict[int, int] = {}
    shared: list[Shared] = []

    def place(value: Any) -> int:
        if not isinstance(value, Shared):
            raise TypeError(type(value).__name__)
        found = places.setdefault(id(value), len(shared))
        if found == len(shared):
            shared.append(value)
        return found

    return PackedRun(encoder(place)(data), tuple(shared))
