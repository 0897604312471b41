"""Marks spans of calls that an earlier process executed and recorded."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

REPLAYED: Final = "_kantan_replayed"
"""An attribute of the span's data."""


def mark_replayed(span: Any) -> None:
    """Mark a span of a call that is already recorded in this trace, so that it is not recorded twice."""
    with suppress(AttributeError):  # custom data that accepts no attributes
        setattr(span.span_data, REPLAYED, True)
