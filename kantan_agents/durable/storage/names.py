"""A name from a model or a tool, as a key of a table."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from kantan_agents.support.storable_text import storable_text

_LONGEST: Final = 2_000
"""Bytes. A Postgres index takes at most 2,704, with the run's id."""


def stored_name(given: str) -> str:
    """Return the name, or a substitute that every database accepts as a key; idempotent.

    Some providers put reasoning into call ids.
    """
    name = storable_text(given)
    data = name.encode()
    return name if len(data) <= _LONGEST else f"sha256/{sha256(data).hexdigest()}"
