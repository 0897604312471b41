"""The metadata of an answer: the same names for every format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.reading import Reading
from kantan_agents.protocol.translate.usage import is_count


@attrs.frozen
class Known:
    """What ``metadata`` says of an answer, in names that are the same for every format."""

    id: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Mapping[str, int] = attrs.field(factory=dict)

    def as_metadata(self) -> dict[str, Any] | None:
        """Return it as ``ProviderResponse.metadata``; None if nothing is known."""
        said = attrs.asdict(self, recurse=False, filter=lambda _, value: value is not None and value != {})
        return said or None

    @classmethod
    def of(cls, metadata: Any, losses: Losses) -> Known:
        """Read it from ``ProviderResponse.metadata``; what has no place in any format is a loss."""
        if metadata is None:
            return cls()
        if not isinstance(metadata, Mapping):
            losses.add("metadata", f"must be an object, not {type(metadata).__name__}")
            return cls()
        said: dict[str, Any] = {}
        for name, value in metadata.items():
            if name not in ("id", "model", "finish_reason", "usage"):
                losses.add(f"metadata.{name}", "is a field the format has no place for")
            elif name == "usage" and isinstance(value, Mapping):
                said[name] = _counts(value, losses)
            elif name == "usage" or not isinstance(value, str):
                losses.add(
                    f"metadata.{name}", f"is of the type {type(value).__name__}, which has no place here"
                )
            else:
                said[name] = value
        return cls(**said)

    def fields(self, **names: str) -> dict[str, Any]:
        """Return what is known as wire fields, under the names of the format."""
        return {wire: getattr(self, name) for name, wire in names.items() if getattr(self, name) is not None}


def _counts(usage: Mapping[str, Any], losses: Losses) -> dict[str, int]:
    for name, count in usage.items():
        if not is_count(count):
            losses.add(f"metadata.usage.{name}", f"must be a whole number of at least 0, not {count!r}"[:200])
    return {name: count for name, count in usage.items() if is_count(count)}


def read_texts(reading: Reading, data: Mapping[str, Any], path: str, **names: str) -> dict[str, str]:
    """Return the fields of ``Known`` that are texts, from the names of the format."""
    found = {name: reading.field(data, wire, str, path) for name, wire in names.items()}
    return {name: text for name, text in found.items() if text is not None}
