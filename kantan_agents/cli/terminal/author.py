"""The name of the person at the terminal, who decides something."""

from __future__ import annotations

import getpass


def author(by: str | None) -> str:
    """Return the name that was given, or that of the user of the system."""
    if by:
        return by
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user has no name
        return "command line"
