"""Resource usage of the processes of a command, seen from outside.

Runs in the process of ``supervisor.py``, with the standard library only.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

SAMPLE_SECONDS = 0.1
_WALK_SECONDS = 1.0
_SHARE_OF_TIME = 0.05
_MOST_FILES = 20_000
_MIB = 1024 * 1024
_BLOCK = 512
_KNOWS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SHARED = "/dev/shm"  # noqa: S108 - in the sandbox, a separate file system


class Usage:
    """Resource usage of all processes below this one; more of them lengthen the ``pause``."""

    def __init__(self, limits: dict[str, Any], temporary: str) -> None:
        self._limits = limits
        self._temporary = temporary
        self._sampled = self._walked = 0.0
        self.pause = SAMPLE_SECONDS

    def is_due(self) -> bool:
        """Return whether the next sample is due."""
        return time.monotonic() - self._sampled >= self.pause

    def exceeded(self) -> str | None:
        """Take a sample; return the exceeded limit."""
        started = time.monotonic()
        try:
            return self._exceeded(started)
        finally:
            self._sampled = time.monotonic()
            self.pause = max(SAMPLE_SECONDS, (self._sampled - started) / _SHARE_OF_TIME)

    def _exceeded(self, now: float) -> str | None:
        found = descendants(os.getpid())
        if len(found) > self._limits["processes"]:
            return "processes"
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = own.ru_utime + own.ru_stime
        for pid in found:
            with suppress(OSError, ValueError, IndexError):
                fields = _fields(Path(f"/proc/{pid}"))
                seconds += sum(map(int, fields[11:15])) / _TICKS  # including children that it has waited for
        memory = sum(map(_memory, found)) + _files_in_memory(found)
        if memory > self._limits["memory_bytes"]:
            return "memory"
        if seconds > self._limits["cpu_seconds"]:
            return "cpu"
        disk = self._limits["disk_bytes"]
        if sum(map(_written, (os.getpid(), *found))) > disk:
            return "disk"
        if self._temporary and now - self._walked >= _WALK_SECONDS:
            self._walked = now
            if _size(self._temporary) > disk:
                return "disk"
        return None


def _memory(pid: int) -> int:
    """With its share of shared memory, without mapped files."""
    own = shared = -1
    with suppress(OSError, ValueError, IndexError):
        for name, value in _lines(f"/proc/{pid}/status"):
            if name == b"RssAnon":
                own = value
            elif name == b"RssShmem":
                shared = value
    if own < 0:  # an old or an emulated system
        with suppress(OSError, ValueError, IndexError):
            _, resident, files, *_ = map(int, Path(f"/proc/{pid}/statm").read_bytes().split())
            return (resident - files) * _PAGE
        return 0
    if shared > _MIB:  # small ones are not worth the time that the kernel takes to divide them
        with suppress(OSError, ValueError, IndexError):
            rollup = dict(_lines(f"/proc/{pid}/smaps_rollup"))
            shared = rollup.get(b"Pss_Shmem", shared)
    return own + max(shared, 0)


def _lines(file: str) -> Iterator[tuple[bytes, int]]:
    for line in Path(file).read_bytes().splitlines():
        name, _, value = line.partition(b":")
        if value.endswith(b" kB"):
            yield name, int(value[:-3]) * 1024


def _files_in_memory(found: list[int]) -> int:
    sizes: dict[tuple[int, int], int] = {}
    for pid in found:
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with suppress(OSError):
                    if os.readlink(entry.path).startswith("/memfd:"):
                        file = os.stat(entry.path)
                        sizes[file.st_dev, file.st_ino] = file.st_blocks * _BLOCK
    return sum(sizes.values()) + _shared_directory(found)


def _shared_directory(found: list[int]) -> int:
    with suppress(OSError):
        own = os.stat(_SHARED).st_dev
        for pid in reversed(found):
            with suppress(OSError):
                place = f"/proc/{pid}/root{_SHARED}"
                if os.stat(place).st_dev != own:
                    system = os.statvfs(place)
                    return (system.f_blocks - system.f_bfree) * system.f_frsize
    return 0


def _written(pid: int) -> int:
    """Including children that it has waited for."""
    with suppress(OSError, ValueError, KeyError):
        fields = dict(line.split(b": ") for line in Path(f"/proc/{pid}/io").read_bytes().splitlines())
        return int(fields[b"write_bytes"]) - int(fields[b"cancelled_write_bytes"])
    return 0


def _size(folder: str) -> int:
    """Of very many files, the size of some."""
    size, count = 0, 0
    waiting = [folder]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                count += 1
                if count > _MOST_FILES:
                    return size
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
    return size


def descendants(pid: int) -> list[int]:
    """Return the descendants of a process; empty without /proc."""
    children_of = _children if _KNOWS_CHILDREN else _children_of_all()
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children_of(waiting.pop())
        found += below
        waiting += below
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                children += map(int, (task / "children").read_bytes().split())
    return children


def _children_of_all() -> Callable[[int], list[int]]:
    """For kernels without lists of children."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for place in Path("/proc").iterdir():
            if place.name.isdigit():
                with suppress(OSError, ValueError, IndexError):
                    children.setdefault(int(_fields(place)[1]), []).append(int(place.name))
    return lambda pid: children.pop(pid, [])


def _fields(process: Path) -> list[bytes]:
    """The name in parentheses, which may contain anything, and the fields before it are omitted."""
    return (process / "stat").read_bytes().rpartition(b")")[2].split()
