"""Writes subagent files with distinct modification times, however fast a test changes them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_dates = itertools.count(1_700_000_000 * 10**9 + 1, 1_000_003)


def agent_text(name: str, prompt: str = "Do it.", description: str = "Does it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\n{prompt}"


def write(path: Path, name: str, prompt: str = "Do it.", description: str = "Does it.") -> Path:
    """Write a subagent file in place, replacing an existing one."""
    return write_text(path, agent_text(name, prompt, description))


def write_text(path: Path, text: str | bytes) -> Path:
    is_new = not path.exists()
    for directory in reversed([above for above in path.parents if not above.exists()]):
        directory.mkdir()
        set_unique_time(directory.parent)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    set_unique_time(path)
    if is_new:
        set_unique_time(path.parent)
    return path


def set_unique_time(path: Path) -> None:
    """Give a file or directory a unique modification time, well in the past."""
    date = next(_dates)
    os.utime(path, ns=(date, date))


def restore_date(path: Path, date: int) -> None:
    """Restore the modification time of a file, in a later tick of the file system's clock."""
    changed = path.stat().st_ctime_ns
    os.utime(path, ns=(date, date))
    while path.stat().st_ctime_ns == changed:
        os.utime(path, ns=(date, date))


@contextmanager
def without_root() -> Iterator[None]:
    """Run without root's permissions."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
