"""Values that SQLite refuses, as ones it takes: better a span with a "?" in it than no span."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

_LARGEST = 2**63 - 1


def storable(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return ``values`` as SQLite can store them."""
    return tuple(_storable(value) for value in values)


def _storable(value: Any) -> Any:
    if value is None or isinstance(value, (float, bytes)):
        return value
    if isinstance(value, int) and abs(value) <= _LARGEST:
        return value
    # Half of a surrogate pair is no character: UTF-8 has no bytes for it.
    return str(value).encode("utf-8", "replace").decode("utf-8")


def storable_usage(usage: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return ``usage``, which is added to the metadata of its trace, with names that SQLite can store."""
    if usage is None:
        return None
    repaired: dict[str, Any] = json.loads(_storable(json.dumps(usage, ensure_ascii=False, default=str)))
    return repaired
