"""Retries of the OpenAI client: which calls it must not retry, and who is notified when it waits for one.

The client retries a failed request twice by default, and the SDK turns that off only after its own first
attempt. If ``Retry`` makes the retries, nothing would count or limit these requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeAlias
from weakref import ref

RetryListener: TypeAlias = Callable[..., Awaitable[None]]
"""Receives ``delay``, ``status``, ``attempt`` and ``attempts``, as ``RetryScheduled`` has them."""

_ONLY = "_kantan_agents_makes_all_retries"
client_retries_off: ContextVar[bool] = ContextVar("kantan_agents_client_retries_off", default=False)
"""Whether a client that asks before each request must not retry it."""
client_retry_listener: ContextVar[RetryListener | None] = ContextVar(
    "kantan_agents_client_retry_listener", default=None
)
"""Is awaited before a client waits to repeat a request of this task."""

_SLEEP: Final = "_sleep_for_retry"
_NEEDED: Final = {"retries_taken", "max_retries", "options", "response"}


def claim_all_retries(policy: Any) -> None:
    """Mark a retry policy as the only one: the clients of models then send each request once.

    The SDK carries the policy to each model call, also of hand-off targets and delegated agents.
    """
    setattr(policy, _ONLY, True)


def makes_all_retries(settings: Any) -> bool:
    """Return whether the retry policy in these ``ModelSettings`` is marked as the only one."""
    policy = getattr(getattr(settings, "retry", None), "policy", None)
    return getattr(policy, _ONLY, False) is True


def report_client_retries(client: Any) -> None:
    """Make an OpenAI client call ``client_retry_listener`` before it waits to repeat a request.

    The method that waits is private, as nothing public is called then. It is called as before, so without a
    ``Retry-After`` the delay differs from the reported one by a random part, at most a quarter of it.
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
