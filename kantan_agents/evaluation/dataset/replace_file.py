"""Writes a file of a dataset atomically: readers see either the old or the new content."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from kantan_agents.errors import DatasetFileError


def replace_file(path: Path, content: bytes) -> None:
    """Write a file, which is replaced if it exists.

    Raises:
        DatasetFileError: E100, it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        try:
            part.write_bytes(content)
            part.replace(path)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
    except OSError as error:
        raise DatasetFileError(path=str(path), reason=error.strerror or str(error)) from error
