"""One time limit for all waits for recorders while the process exits.

A process exits in several steps. While another process locks the file, each would wait in vain.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kantan_agents.traces import registry

END_SECONDS = 5.0
# An exit step this soon after a vain wait belongs to the same sequence.
_SAME_SECONDS = 1.0
# For a working file, after a failing one used up the limit.
_LEAST_SECONDS = 0.25


class _Bound:
    until = 0.0


def remaining(*, is_ending: bool) -> float:
    """Return the remaining seconds; ``is_ending`` never renews them for a failing file."""
    now = time.monotonic()
    is_failing = any(recorder.is_failing for recorder in registry.recorders())
    is_new = not _Bound.until or (now > _Bound.until + _SAME_SECONDS and not (is_ending and is_failing))
    if is_new:
        _Bound.until = now + END_SECONDS
    return max(0.0 if is_failing else _LEAST_SECONDS, _Bound.until - now)


def flush_within_bound(flush: Callable[[float], bool], *, is_ending: bool) -> bool:
    """Flush within the limit; return whether everything is written."""
    is_written = flush(remaining(is_ending=is_ending))
    if is_written:
        renew()
    return is_written


def renew() -> None:
    """Renew the whole limit."""
    _Bound.until = 0.0
