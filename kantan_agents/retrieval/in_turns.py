"""Long looks in short steps, so that whatever else the event loop has to do gets its turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import anyio.lowlevel

ItemT = TypeVar("ItemT")

_AT_ONCE: Final = 100
"""How many are looked at in one step: about a millisecond of rules."""


async def first_that(fits: Callable[[ItemT], bool], items: Iterable[ItemT], count: int) -> list[ItemT]:
    """Return the first ``count`` of ``items`` that fit, or as many as there are."""
    found: list[ItemT] = []
    for number, item in enumerate(items, 1):
        if len(found) >= count:
            break
        if fits(item):
            found.append(item)
        if number % _AT_ONCE == 0:
            await anyio.lowlevel.checkpoint()
    return found
