"""Which run a result comes from: the SDK's results do not say."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

_MARK = "kantan_run_id"


def note_run_id(result: Any, run_id: str) -> None:
    """Leave the id of the run on its result."""
    with suppress(AttributeError):  # a runner of the user's own may return anything
        setattr(result, _MARK, run_id)


def run_id_of(result: Any) -> str | None:
    """Return the id of the run a result comes from; None outside of ours."""
    return getattr(result, _MARK, None)
