"""Writes a file of a dataset atomically."""

from __future__ import annotations

from pathlib import Path

from kantan_agents.errors import DatasetFileError
from kantan_agents.support import replace_file as files


def replace_file(path: Path, content: bytes) -> None:
    """Write a file, which is replaced if it exists.

    Raises:
        DatasetFileError: E100, it cannot be written.
    """
    try:
        files.replace_file(path, content)
    except OSError as error:
        raise DatasetFileError(path=str(path), reason=error.strerror or str(error)) from error
