"""The time that the ends of a process wait for its recorders: one bound for all of them together.

A process may end in several steps: a SIGTERM, the last traces, the end of the event loop, the exit functions.
While the file is locked by another process, each of them would wait in vain.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kantan_agents.traces import registry

END_SECONDS = 5.0
# An end this long after a wait in vain belongs to the same sequence.
_SAME_SECONDS = 1.0
# A file that works is written even if the bound was used up while it did not.
_LEAST_SECONDS = 0.25


class _Bound:
    until = 0.0


def remaining(*, is_ending: bool) -> float:
    """Return the seconds that the calling end of the process may wait.

    Args:
        is_ending: Whether the process is known to end, so that the bound is not renewed for a failing file.
    """
    now = time.monotonic()
    is_failing = any(recorder.is_failing for recorder in registry.recorders())
    is_new = not _Bound.until or (now > _Bound.until + _SAME_SECONDS and not (is_ending and is_failing))
    if is_new:
        _Bound.until = now + END_SECONDS
    return max(0.0 if is_failing else _LEAST_SECONDS, _Bound.until - now)


def flush_within_bound(flush: Callable[[float], bool], *, is_ending: bool) -> bool:
    """Call ``flush`` with the seconds that are left; return whether everything is written."""
    is_written = flush(remaining(is_ending=is_ending))
    if is_written:
        renew()
    return is_written


def renew() -> None:
    """Let the next end of this process wait for the whole bound."""
    _Bound.until = 0.0
