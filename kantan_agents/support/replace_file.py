"""Writes a file atomically: a reader sees either the old or the new content."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from kantan_agents.support.private_files import open_private

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def replace_file(path: Path, content: bytes, *, is_private: bool = False) -> None:
    """Write a file, which is replaced if it exists; an existing file keeps its mode.

    Args:
        path: The file.
        content: The new content.
        is_private: Whether a new file is for its owner only.

    Raises:
        OSError: It cannot be written; an existing file is unchanged.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        # In the same directory, so that it can be moved.
        descriptor = open_private(part) if is_private else os.open(part, _FLAGS, 0o666)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - the file is open already
            file.write(content)
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
