"""Whether a file may be written, asked before SQLite tries it."""

from __future__ import annotations

import os
from pathlib import Path


def may_write(path: Path) -> bool:
    """Tell whether this process may write the file or directory at ``path``, as the user it acts for."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
