"""Disables and reports retries of the OpenAI client.

The client retries twice by default, and the SDK stops that only after its first attempt, so ``Retry`` could
neither count nor limit them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeAlias
from weakref import ref

RetryListener: TypeAlias = Callable[..., Awaitable[None]]
"""Receives the ``delay``, ``status``, ``attempt`` and ``attempts`` of ``RetryScheduled``."""

_ONLY = "_kantan_agents_makes_all_retries"
client_retries_off: ContextVar[bool] = ContextVar("kantan_agents_client_retries_off", default=False)
"""Whether clients that check it must not retry."""
client_retry_listener: ContextVar[RetryListener | None] = ContextVar(
    "kantan_agents_client_retry_listener", default=None
)
"""Awaited before a client waits to retry."""

_SLEEP: Final = "_sleep_for_retry"
_NEEDED: Final = {"retries_taken", "max_retries", "options", "response"}


def claim_all_retries(policy: Any) -> None:
    """Mark a retry policy as the only one: model clients then do not retry.

    The SDK carries it to all model calls, even of handoffs and delegated agents.
    """
    setattr(policy, _ONLY, True)


def makes_all_retries(settings: Any) -> bool:
    """Return whether the settings' retry policy is the only one."""
    policy = getattr(getattr(settings, "retry", None), "policy", None)
    return getattr(policy, _ONLY, False) is True


def report_client_retries(client: Any) -> None:
    """Make an OpenAI client call ``client_retry_listener`` before it waits to retry.

    There is no public hook. Without a ``Retry-After``, the real delay differs by at most a quarter.
    """
    if hasattr(type(client), _SLEEP) and _SLEEP not in vars(client):
        setattr(client, _SLEEP, partial(_report_and_sleep, ref(client)))


async def _report_and_sleep(owner: Callable[[], Any], *args: Any, **given: Any) -> None:
    client: Any = owner()
    listener = client_retry_listener.get()
    if listener is not None and given.keys() >= _NEEDED:
        taken, most, response = given["retries_taken"], given["max_retries"], given["response"]
        status, headers = (None, None) if response is None else (response.status_code, response.headers)
        delay = client._calculate_retry_timeout(most - taken, given["options"], headers)
        await listener(delay=delay, status=status, attempt=taken + 2, attempts=most + 1)
    await getattr(type(client), _SLEEP)(client, *args, **given)
