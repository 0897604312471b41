"""pytest plugin: keeps the temporary files of the tests in memory.

Most tests write a database, and each of its transactions waits for the disk: on a busy one, a hundred of them
take three seconds, and 0.01 in memory. No test depends on the disk, because none turns off the power: what a
process has written before it is killed is there afterwards in both.

Set ``TMPDIR`` for another place, for example to look at large files afterwards.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
LEAST_FREE_BYTES = 2 << 30  # a container often has 64 MB there


def is_usable(folder: Path) -> bool:
    """Return whether all tests can have their files in a folder; some of them are programs."""
    return (
        folder.is_dir()
        and os.access(folder, os.W_OK)
        and not os.statvfs(folder).f_flag & os.ST_NOEXEC
        and shutil.disk_usage(folder).free > LEAST_FREE_BYTES
    )


# The workers of pytest-xdist and the processes that tests start inherit it.
if "TMPDIR" not in os.environ and is_usable(MEMORY):
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None
