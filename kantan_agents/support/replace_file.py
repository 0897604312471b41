"""Writes a file atomically."""

from __future__ import annotations

import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from kantan_agents.support.private_files import open_private


def replace_file(path: Path, content: bytes) -> None:
    """An existing file keeps its mode, and after an error its content."""
    part = path.parent / f".{secrets.token_hex(8)}.part"
    try:
        # In the same directory, so that it can be moved.
        with open(open_private(part), "wb") as file:  # noqa: PTH123 - the file is open already
            file.write(content)
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
