"""Which model calls only ``Retry`` repeats, so that the client must send each request once.

The OpenAI client retries a failed request twice by default, and the SDK turns that off only after its own
first attempt. Nothing would count or limit these requests.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

_ONLY = "_kantan_agents_makes_all_retries"
client_retries_off: ContextVar[bool] = ContextVar("kantan_agents_client_retries_off", default=False)
"""Whether a client that asks before each request must not retry it."""


def claim_all_retries(policy: Any) -> None:
    """Mark a retry policy as the only one: the clients of models then send each request once.

    The SDK carries the policy to each model call, also of hand-off targets and delegated agents.
    """
    setattr(policy, _ONLY, True)


def makes_all_retries(settings: Any) -> bool:
    """Return whether the retry policy in these ``ModelSettings`` is marked as the only one."""
    policy = getattr(getattr(settings, "retry", None), "policy", None)
    return getattr(policy, _ONLY, False) is True
