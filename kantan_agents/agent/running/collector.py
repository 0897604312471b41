"""Whether the garbage collector is running in the current thread."""

from __future__ import annotations

import gc
import threading
from typing import Any

_phases: dict[str, Any] = {}
"""The phases of the latest collection, ``start`` and ``stop``, with their data; the last is the newest."""

_in_thread = threading.local()
"""The same, by thread."""

# Functions in C: Python delivers a signal in the next function that is not. If that were a callback of the
# collector, Ctrl-C during a collection would be lost, since what a callback raises is ignored.
gc.callbacks.extend((_phases.pop, _phases.__setitem__, _in_thread.__setattr__))


def is_collecting() -> bool:
    """Return whether the current thread runs a finalizer or a callback for the garbage collector."""
    # Another thread may collect between these lines. Then its data is not that of this thread.
    return list(_phases)[-1:] == ["start"] and _phases.get("start") is getattr(_in_thread, "start", _phases)
