"""``Retry``: model calls and tools that are tried again."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import random
from collections.abc import Iterable
from typing import Any

import anyio
from agents import ModelRetryBackoffSettings, ModelRetrySettings, ModelSettings, retry_policies
from agents.exceptions import AgentsException
from agents.retry import RetryDecision, RetryPolicyContext

from kantan_agents.errors import InvalidOptionError, KantanAgentsError, ProviderRequestError
from kantan_agents.interception import Middleware, ToolCall, ToolNext
from kantan_agents.pipeline import Next, Run
from kantan_agents.support.arguments import checked_int, checked_number
from kantan_agents.support.log import get_logger

_STATUSES = (408, 409, 429, *range(500, 600))
_log = get_logger("kantan_agents.middleware")


class Retry(Middleware):
    """Has failed model calls tried again by the SDK, and tools that may be run twice.

    Model calls: rate limits, server errors, timeouts and lost connections, also those of
    ``AnthropicProvider`` and ``GeminiProvider``. The waiting time grows from
    ``initial_delay`` by ``multiplier`` up to ``max_delay``, a little more or less by chance; where the server
    says how long (``Retry-After``), that long. These are the SDK's own settings, ``ModelSettings.retry``:
    what the ``RunConfig`` or the agent that is run says there wins.

    Tools: whatever they raise, except what no second try can change: errors of this library and of the SDK,
    such as arguments that do not fit.

    Args:
        attempts: How often a call is made at most, the first time included.
        tools: Names of the tools that may be run again because that does no harm.
        initial_delay: Seconds before the second attempt.
        max_delay: Seconds between two attempts at most.
        multiplier: By how much the delay grows each time.
        longest_wait: A server that asks for more seconds than this is not asked again.

    Raises:
        InvalidOptionError: E75, an argument has a value it cannot have.
    """

    def __init__(
        self,
        attempts: int = 3,
        *,
        tools: Iterable[str] = (),
        initial_delay: float = 0.5,
        max_delay: float = 8.0,
        multiplier: float = 2.0,
        longest_wait: float = 60.0,
    ) -> None:
        self.attempts = checked_int("attempts", attempts, 1)
        self.tools = _names(tools)
        self._backoff = ModelRetryBackoffSettings(
            initial_delay=checked_number("initial_delay", initial_delay),
            max_delay=checked_number("max_delay", max_delay),
            multiplier=checked_number("multiplier", multiplier),
            jitter=True,
        )
        self._longest_wait = checked_number("longest_wait", longest_wait)
        settings = ModelRetrySettings(
            max_retries=attempts - 1, backoff=self._backoff, policy=_policy(self._longest_wait)
        )
        self._settings = ModelSettings(retry=settings)

    async def run(self, run: Run, call_next: Next) -> None:
        """Put the settings beneath those of the user, then let the run go on."""
        config = run.run_config
        given = config.model_settings or ModelSettings()
        of_agent = ModelSettings(retry=run.agent.sdk_agent.model_settings.retry)
        retry = self._settings.resolve(of_agent).resolve(ModelSettings(retry=given.retry)).retry
        config.model_settings = dataclasses.replace(given, retry=retry)
        await call_next(run)

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Run the tool, again if it raises and may be run again."""
        attempts = self.attempts if call.name in self.tools else 1
        for attempt in range(1, attempts):
            try:
                return await call_next(call)
            except Exception as error:
                if error is not call.error or isinstance(error, (KantanAgentsError, AgentsException)):
                    raise
                _log.info("tool failed, trying again", tool=call.name, attempt=attempt, error=repr(error))
            await anyio.sleep(self._delay(attempt))
        return await call_next(call)

    def _delay(self, attempt: int) -> float:
        backoff = self._backoff
        longest = backoff.max_delay or 0.0
        grown = (backoff.initial_delay or 0.0) * (backoff.multiplier or 0.0) ** (attempt - 1)
        return min(grown, longest) * random.uniform(0.875, 1.0)  # noqa: S311 - nothing secret

    def __repr__(self) -> str:
        tools = f", tools={sorted(self.tools)}" if self.tools else ""
        return f"Retry({self.attempts}{tools})"


def _policy(longest_wait: float) -> Any:
    transient: Any = retry_policies.any(
        retry_policies.provider_suggested(),
        retry_policies.network_error(),
        retry_policies.http_status(_STATUSES),
    )

    @functools.wraps(transient)  # the SDK reads marks off a policy
    async def decide(context: RetryPolicyContext) -> Any:
        error, wait = context.error, context.normalized.retry_after
        is_request = isinstance(error, ProviderRequestError)
        if isinstance(error, ProviderRequestError):
            wait = error.retry_after
        is_ours = isinstance(error, KantanAgentsError) and not is_request
        if is_ours or (wait is not None and wait > longest_wait):
            return False
        decision = transient(context)
        decision = await decision if inspect.isawaitable(decision) else decision
        if is_request and wait is not None and getattr(decision, "retry", decision):
            return RetryDecision(retry=True, delay=wait)
        return decision

    return decide


def _names(tools: Any) -> frozenset[str]:
    if isinstance(tools, Iterable) and not isinstance(tools, (str, bytes)):
        names = list(tools)
        if all(isinstance(name, str) for name in names):
            return frozenset(names)
    raise InvalidOptionError(option="tools", reason=f"must be names of tools, not {tools!r}")
