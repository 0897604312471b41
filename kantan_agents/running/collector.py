"""Whether the garbage collector is running in the current thread."""

from __future__ import annotations

import gc
from threading import get_ident

_collecting_thread: int | None = None


def _note(phase: str, _info: dict[str, int]) -> None:
    global _collecting_thread  # noqa: PLW0603 - there is one collector, and it runs in one thread at a time
    _collecting_thread = get_ident() if phase == "start" else None


gc.callbacks.append(_note)


def is_collecting() -> bool:
    """Return whether the current thread runs a finalizer or a callback for the garbage collector."""
    return _collecting_thread == get_ident()
