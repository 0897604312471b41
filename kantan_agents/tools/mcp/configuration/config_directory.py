"""The user's configuration directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "KANTAN_AGENTS_CONFIG_DIR"
_NAME = "kantan_agents"


def config_directory(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the directory, which may not exist; None without a home directory.

    Relative paths are ignored: the working directory must not decide.
    """
    environ = os.environ if environ is None else environ
    own = environ.get(VARIABLE, "")
    if os.path.isabs(own):  # noqa: PTH117 - of a string
        return Path(own)
    base = environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(base):  # noqa: PTH117
        return Path(base, _NAME)
    try:
        return Path.home() / ".config" / _NAME
    except RuntimeError:
        return None
