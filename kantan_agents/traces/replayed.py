"""Spans of calls that an earlier process has made and recorded."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

REPLAYED: Final = "_kantan_replayed"
"""Attribute of the data of such a span."""


def mark_replayed(span: Any) -> None:
    """Mark a span as one of a call that was made before, in the same trace. It is not recorded twice."""
    with suppress(AttributeError):  # data of a custom kind, which takes no more attributes
        setattr(span.span_data, REPLAYED, True)
