"""By what a file or a directory is known to be unchanged since it was read."""

from __future__ import annotations

import errno
import os
import time

Signature = tuple[int, int, int, int, int]
"""When it was written and when it was changed in nanoseconds, its size, its inode, its device."""

Seen = Signature | int
"""A signature; or the ``errno`` where there is none to be had."""

ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
"""What ``errno`` says of a path that leads to nothing."""

_SECOND = 1_000_000_000
_TICK = 50_000_000
_COARSE_TICK = 2 * _SECOND


def clock_ns() -> int:
    """Return the time of the clock that files are dated by, in nanoseconds."""
    return time.time_ns()


def signature_of(status: os.stat_result) -> Signature:
    """Return the signature in what ``stat`` says."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev)


def seen_at(path: str) -> Seen:
    """Return what stands at a path now; links are followed. It costs one ``stat``."""
    try:
        return signature_of(os.stat(path))  # noqa: PTH116 - a Path would double the cost
    except OSError as error:
        return error.errno or errno.EIO
    except ValueError:
        return errno.EINVAL


def identity_of(signature: Signature) -> tuple[int, int]:
    """Return what two paths to the same file have in common."""
    return signature[3:]


def is_racy(signature: Signature, now: int) -> bool:
    """Whether a change right after ``now`` could leave this signature as it is.

    File systems date in ticks of some milliseconds, old ones of two seconds. What was dated in the tick in
    which it was looked at can change once more in that tick, and nobody would see it.

    Args:
        signature: What was seen.
        now: ``clock_ns()`` from before it was seen.
    """
    written, changed, *_ = signature
    tick = _TICK if written % _SECOND or changed % _SECOND else _COARSE_TICK
    # The date of the last change is the system's own; in the future, its clock is not ours. When a file was
    # written is for anyone to set: a date far ahead is no sign of haste, as the next writing sets another.
    return changed > now - tick or abs(now - written) < tick
