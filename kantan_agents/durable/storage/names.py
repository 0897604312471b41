"""``stored_name``: a name that a model or a tool has given, as a key of a table."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from kantan_agents.support.storable_text import storable_text

_LONGEST: Final = 2_000
"""In bytes. An index of Postgres takes at most 2,704, with the id of the run."""


def stored_name(given: str) -> str:
    """Return the name itself if every database takes it as a key, else one that stands for it.

    Some providers put what a model has thought into the ids of its calls. Of a name that is returned, this
    returns the same.
    """
    name = storable_text(given)
    data = name.encode()
    return name if len(data) <= _LONGEST else f"sha256/{sha256(data).hexdigest()}"
