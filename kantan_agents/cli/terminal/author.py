"""The user who makes a decision."""

from __future__ import annotations

import getpass


def author(by: str | None) -> str:
    """Return the given name, or the system user's."""
    if by:
        return by
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user has no name
        return "command line"
