"""The error of a run outside asyncio."""

from __future__ import annotations

import sys

from kantan_agents.errors import EventLoopError


def no_event_loop() -> EventLoopError:
    """Return the error, which names trio if it is running."""
    trio = sys.modules.get("trio")
    try:
        is_trio = trio is not None and bool(trio.lowlevel.in_trio_run())
    except AttributeError:  # an old version of trio
        is_trio = False
    if is_trio:
        return EventLoopError(found="this code runs on trio", library="trio")
    return EventLoopError(found="no event loop is running here", library="anyio")
