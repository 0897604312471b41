"""Decides whether a failed model call is retried, and after how many seconds."""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Awaitable, Callable
from typing import Any

from agents import ModelRetryBackoffSettings, retry_policies
from agents.retry import RetryDecision, RetryPolicyContext

from kantan_agents.core.pipeline import loggable
from kantan_agents.errors import KantanAgentsError, ProviderRequestError
from kantan_agents.middleware.deadline import seconds_left
from kantan_agents.models.client_retries import claim_all_retries
from kantan_agents.support.log import get_logger
from kantan_agents.traces.capture.playback import Tape

Policy = Callable[[RetryPolicyContext], Awaitable[Any]]

_STATUSES = (408, 409, 429, *range(500, 600))
_SPREAD = 0.25
_log = get_logger("kantan_agents.middleware")


def backoff_delay(backoff: ModelRetryBackoffSettings, attempt: int) -> float:
    """Return the delay after the attempt of this number, without jitter."""
    initial, longest = backoff.initial_delay or 0.0, backoff.max_delay or 0.0
    try:
        return min(initial * (backoff.multiplier or 0.0) ** (attempt - 1), longest)
    except OverflowError:
        return longest if initial else 0.0


def spread_delay(asked: float | None, backoff: ModelRetryBackoffSettings, attempt: int) -> float:
    """Return the delay after the attempt of this number, with jitter.

    A server that asked many clients to wait for the same time must not get all of them back at once, and none
    of them too early. So the jitter is added to the time it asked for: up to a quarter of that time or the
    usual delay, whichever is longer, and never more than ``max_delay``.
    """
    usual, longest = backoff_delay(backoff, attempt), backoff.max_delay or 0.0
    if asked is None or asked <= 0:
        return min(usual * random.uniform(0.875, 1.125), longest)  # noqa: S311 - nothing secret
    return asked + random.uniform(0.0, min(max(usual, asked * _SPREAD), longest))  # noqa: S311


def retry_policy(backoff: ModelRetryBackoffSettings, longest_wait: float) -> Policy:
    """Return the policy for transient errors, which is the only one that retries a call.

    Args:
        backoff: The delays if the server does not ask for one.
        longest_wait: A call is not retried if the server asks for more seconds than these.
    """
    transient: Any = retry_policies.any(
        retry_policies.provider_suggested(),
        retry_policies.network_error(),
        retry_policies.http_status(_STATUSES),
    )

    @functools.wraps(transient)  # the SDK reads attributes of a policy
    async def decide(context: RetryPolicyContext) -> Any:
        error = context.error
        if isinstance(error, KantanAgentsError) and not isinstance(error, ProviderRequestError):
            return False
        decision = transient(context)
        decision = await decision if inspect.isawaitable(decision) else decision
        if not getattr(decision, "retry", decision):
            return decision
        asked = _asked(context)
        if asked is not None and asked > longest_wait:
            _log.info("model call not retried: longest_wait", asked=asked, error=loggable(error))
            return False
        delay = spread_delay(asked, backoff, context.attempt)
        if delay >= seconds_left():
            _log.info("model call not retried: deadline", delay=delay, error=loggable(error))
            return False
        _log.info(
            "model call failed, trying again", attempt=context.attempt, delay=delay, error=loggable(error)
        )
        if isinstance(decision, RetryDecision):
            decision.delay = delay  # changed in place: it has private fields about the safety of a replay
            return decision
        return RetryDecision(retry=True, delay=delay)

    claim_all_retries(decide)
    return decide


def replayed_policy(tape: Tape) -> Policy:
    """Return the policy that retries a call at once if the recorded run has retried it."""

    async def decide(context: RetryPolicyContext) -> Any:
        del context
        return RetryDecision(retry=tape.is_retried, delay=0.0)

    claim_all_retries(decide)
    return decide


def only_policy(policy: Callable[[RetryPolicyContext], Any]) -> Any:
    """Return a user's policy as the only one that retries a call."""

    @functools.wraps(policy, assigned=())
    def decide(context: RetryPolicyContext) -> Any:
        return policy(context)

    claim_all_retries(decide)
    return decide


def _asked(context: RetryPolicyContext) -> float | None:
    """Return the seconds for which the server has asked; None if it has not."""
    error = context.error
    own = error.retry_after if isinstance(error, ProviderRequestError) else None
    wait: float | None = context.normalized.retry_after if own is None else own
    return wait
