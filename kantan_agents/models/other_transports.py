"""Never repeats a request that failed because its transport belongs to another event loop.

The loops are kept apart in the connection pools of the HTTP library (``models/loop_pools.py``). A transport
without such a pool, or with that of an old version of the library, may keep a connection of its own. Over one
of a closed loop, a request may be sent and its answer not be read; OpenAI's client would send it again, so it
would be paid twice.
"""

from __future__ import annotations

import asyncio
from functools import wraps
from typing import Any
from weakref import ref

from openai import OpenAIError

from kantan_agents.errors import ClientLoopError
from kantan_agents.models.http_pools import transports_of_one_loop

_MARK = "__kantan_checked__"


class _NotRepeatedError(ClientLoopError, OpenAIError):
    """OpenAI's client repeats a request after any error that is not one of its own."""


_NotRepeatedError.__name__ = _NotRepeatedError.__qualname__ = ClientLoopError.__name__


def fail_across_loops(http_client: Any, base_url: str) -> None:
    """Raise E46 where a transport without such a pool fails on another loop than its first; once per client.

    Args:
        http_client: An ``AsyncClient`` of httpx or httpx2, after ``reclaim_connections``.
        base_url: URL of the API that the client is for.
    """
    send = getattr(http_client, "send", None)
    others = transports_of_one_loop(http_client)
    if not others or send is None or hasattr(send, _MARK):
        return
    used: dict[str, ref[asyncio.AbstractEventLoop]] = {}

    @wraps(send)
    async def checked(request: Any, **options: Any) -> Any:
        loop = asyncio.get_running_loop()
        first = used.setdefault("first", ref(loop))
        try:
            return await send(request, **options)
        except RuntimeError as error:
            if first() is loop:
                raise
            kind = type(others[0])
            raise _NotRepeatedError(
                base_url=base_url,
                transport=f"{kind.__module__}.{kind.__qualname__}",
                reason=f"{type(error).__name__}: {error}",
            ) from error

    setattr(checked, _MARK, True)
    http_client.send = checked
