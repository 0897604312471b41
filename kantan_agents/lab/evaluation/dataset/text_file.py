"""Reads the text of a dataset file."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Final

from kantan_agents.errors import DatasetFileError

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, without a byte order mark.

    Raises:
        DatasetFileError: E100, the file is missing, is a directory, cannot be read, or is not UTF-8.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DatasetFileError(path=str(path), reason=error.strerror or str(error)) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if content.startswith(_UTF_16):
            reason = "it is UTF-16; save it as UTF-8"
        else:
            line = content.count(b"\n", 0, error.start) + 1
            reason = f"line {line}: it is not UTF-8 ({error.reason}); save it as UTF-8"
        raise DatasetFileError(path=str(path), reason=reason) from error
