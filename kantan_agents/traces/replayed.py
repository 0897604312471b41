"""Marks spans of calls that an earlier process recorded."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

REPLAYED: Final = "_kantan_replayed"


def mark_replayed(span: Any) -> None:
    """Mark a span so that it is not recorded again in this trace."""
    with suppress(AttributeError):  # custom data that accepts no attributes
        setattr(span.span_data, REPLAYED, True)
