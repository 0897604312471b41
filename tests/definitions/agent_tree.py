"""Agent files on the disc whose dates differ, however fast a test goes about changing them."""

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
    """Write an agent file in place, new or over the old one."""
    return write_text(path, agent_text(name, prompt, description))


def write_text(path: Path, text: str | bytes) -> Path:
    is_new = not path.exists()
    for directory in reversed([above for above in path.parents if not above.exists()]):
        directory.mkdir()
        dated(directory.parent)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    dated(path)
    if is_new:
        dated(path.parent)
    return path


def dated(path: Path) -> None:
    """Give a file or directory a date that no other has, well in the past."""
    date = next(_dates)
    os.utime(path, ns=(date, date))


def restore_date(path: Path, date: int) -> None:
    """Give a file its old date back, in another tick of the file system's clock than the last change."""
    changed = path.stat().st_ctime_ns
    os.utime(path, ns=(date, date))
    while path.stat().st_ctime_ns == changed:
        os.utime(path, ns=(date, date))


@contextmanager
def powerless() -> Iterator[None]:
    """Let the system refuse what it refuses to others than root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
