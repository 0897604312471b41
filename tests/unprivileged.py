"""What a user without privileges may do, also in tests that root runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def open_directory() -> Iterator[Path]:
    """A directory that other users can enter, unlike ``tmp_path``."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        directory.chmod(0o755)
        shutil.rmtree(directory)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be nobody in the block, in all threads; the superuser ignores permissions."""
    superuser = os.geteuid() == 0
    if superuser:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if superuser:
            os.seteuid(0)
