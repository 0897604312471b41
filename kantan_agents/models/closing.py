"""An HTTP response is closed to the end, even where a run is cancelled just then.

The HTTP library shields that from anyio's cancellation but not from asyncio's: a connection would stay in the
pool as in use, for ever, whenever a client leaves in the moment in which the model's stream ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from openai import AsyncOpenAI

from kantan_agents.waiting import wait_for_end


def close_to_the_end(client: AsyncOpenAI) -> None:
    """Have a client close its responses to the end; nothing if it is one that cannot be told."""
    hooks = getattr(getattr(client, "_client", None), "event_hooks", None)
    if isinstance(hooks, dict) and _shield_closing not in hooks.setdefault("response", []):
        hooks["response"].append(_shield_closing)


async def _shield_closing(response: Any) -> None:
    response.stream.aclose = partial(_to_the_end, response.stream.aclose)


async def _to_the_end(close: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.ensure_future(close())
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await wait_for_end(task)
        raise
