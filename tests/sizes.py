"""How large simulations and properties are: as published in CI, smaller where somebody waits for them.

CI selects Hypothesis' profile ``ci``, and ``nox -s hunt`` the profile ``hunt``; the default is ``fast``.
"""

from __future__ import annotations

from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")


def size(published: T, otherwise: T) -> T:
    """Return the size of a simulation: the published one, or in the profile ``fast`` another."""
    return otherwise if settings.get_current_profile_name() == "fast" else published


def examples(otherwise: int, published: int | None = None) -> settings:
    """Return settings for a property whose examples take long.

    Args:
        otherwise: How many examples there are in the profile ``fast``.
        published: How many there are in the others; as many as the profile says if not given.
    """
    number = size(published, otherwise)
    return settings() if number is None else settings(max_examples=number)
