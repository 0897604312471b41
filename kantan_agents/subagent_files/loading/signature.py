"""Signatures of files and directories, to detect changes since they were read."""

from __future__ import annotations

import errno
import os
import time

Signature = tuple[int, int, int, int, int]
"""Modification time and change time in nanoseconds, size, inode, device."""

PathState = Signature | int
"""The signature of a path, or the ``errno`` of the ``stat`` that failed."""

ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
"""The ``errno`` values of a path that does not exist."""

_SECOND = 1_000_000_000
_TICK = 50_000_000
_COARSE_TICK = 2 * _SECOND


def clock_ns() -> int:
    """Return the time of the clock used for file times, in nanoseconds."""
    return time.time_ns()


def signature_of(status: os.stat_result) -> Signature:
    """Return the signature in a ``stat`` result."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev)


def signature_at(path: str) -> PathState:
    """Return the current state of a path; links are followed. Costs one ``stat``."""
    try:
        return signature_of(os.stat(path))  # noqa: PTH116 - a Path would double the cost
    except OSError as error:
        return error.errno or errno.EIO
    except ValueError:
        return errno.EINVAL


def identity_of(signature: Signature) -> tuple[int, int]:
    """Return the part that is equal for two paths to the same file."""
    return signature[3:]


def is_racy(signature: Signature, now: int) -> bool:
    """Return whether a change right after ``now`` could leave this signature the same.

    File times advance in ticks of some milliseconds, on old file systems of two seconds. A file that was
    changed in the tick in which it was examined can change again in that tick without a new signature.

    Args:
        signature: The signature of the file.
        now: ``clock_ns()`` from before the signature was taken.
    """
    modified, changed, *_ = signature
    tick = _TICK if modified % _SECOND or changed % _SECOND else _COARSE_TICK
    # The system sets the change time; one in the future means its clock differs from ours. Programs can set
    # the modification time freely, so one in the far future is harmless: the next write changes it.
    return changed > now - tick or abs(now - modified) < tick
