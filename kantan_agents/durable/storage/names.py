"""A name from a model or a tool, as a key of a table."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from kantan_agents.support.storable_text import storable_text

_LONGEST: Final = 2_000
"""In bytes. An index of Postgres takes at most 2,704, with the id of the run."""


def stored_name(given: str) -> str:
    """Return the name itself if every database accepts it as a key, else a substitute; idempotent.

    Some providers put a model's reasoning into the ids of its calls.
    """
    name = storable_text(given)
    data = name.encode()
    return name if len(data) <= _LONGEST else f"sha256/{sha256(data).hexdigest()}"
