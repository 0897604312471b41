"""Response metadata with the same names for every format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.reader import WireReader
from kantan_agents.models.protocol.usage import is_count
from kantan_agents.support.arguments import shown


@attrs.frozen
class ResponseMetadata:
    """The fields of response metadata in translations."""

    id: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Mapping[str, int] = attrs.field(factory=dict)

    def to_dict(self) -> dict[str, Any] | None:
        """Return the set fields as metadata."""
        values = attrs.asdict(self, recurse=False, filter=lambda _, value: value is not None and value != {})
        return values or None

    @classmethod
    def of(cls, metadata: Any, losses: Losses) -> ResponseMetadata:
        """Read metadata; unknown fields are losses."""
        if metadata is None:
            return cls()
        if not isinstance(metadata, Mapping):
            losses.add("metadata", f"must be an object, not {type(metadata).__name__}")
            return cls()
        values: dict[str, Any] = {}
        for name, value in metadata.items():
            if name not in ("id", "model", "finish_reason", "usage"):
                losses.add(f"metadata.{name}", "is a field that the format cannot hold")
            elif name == "usage" and isinstance(value, Mapping):
                values[name] = _counts(value, losses)
            elif name == "usage" or not isinstance(value, str):
                losses.add(f"metadata.{name}", f"is of the type {type(value).__name__}, not allowed here")
            else:
                values[name] = value
        return cls(**values)

    def fields(self, **names: str) -> dict[str, Any]:
        """Return the set fields under a format's names."""
        return {wire: getattr(self, name) for name, wire in names.items() if getattr(self, name) is not None}


def _counts(usage: Mapping[str, Any], losses: Losses) -> dict[str, int]:
    for name, count in usage.items():
        if not is_count(count):
            losses.add(f"metadata.usage.{name}", f"must be a whole number of at least 0, not {shown(count)}")
    return {name: count for name, count in usage.items() if is_count(count)}


def read_texts(reader: WireReader, data: Mapping[str, Any], path: str, **names: str) -> dict[str, str]:
    """Read string fields from a format's names."""
    found = {name: reader.field(data, wire, str, path) for name, wire in names.items()}
    return {name: text for name, text in found.items() if text is not None}
