"""``Retry``: retries failed model calls and tools."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import anyio
from agents import ModelRetryBackoffSettings, ModelRetrySettings, ModelSettings, retry_policies
from agents.exceptions import AgentsException
from agents.retry import RetryDecision, RetryPolicyContext
from openai import APITimeoutError

from kantan_agents.agent.bridge.call_events import last_call_id
from kantan_agents.core.events import RetryScheduled
from kantan_agents.core.interception import Middleware, ToolCall, ToolNext, active_agent
from kantan_agents.core.pipeline import Next, Run, current_run, loggable
from kantan_agents.errors import (
    AnswerCutOffError,
    InvalidOptionError,
    InvalidToolRulesError,
    KantanAgentsError,
    ProviderRequestError,
)
from kantan_agents.middleware.deadline import seconds_left
from kantan_agents.models.client_retries import claim_all_retries
from kantan_agents.models.protocol.http.error_bodies import is_out_of_credit
from kantan_agents.support.arguments import checked_int, checked_number
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import ToolRules
from kantan_agents.tools.facts import facts_of_call
from kantan_agents.tools.guards.check import check_call
from kantan_agents.traces.capture.playback import Tape

_log = get_logger("kantan_agents.middleware")

GIVEN_SETTINGS = object()
"""Key of the caller's model settings, which ``Retry`` replaces, in a run's state."""

_Policy = Callable[[RetryPolicyContext], Awaitable[Any]]

_STATUSES = (408, 409, 429, *range(500, 600))
_SPREAD = 0.25
_LATE = (TimeoutError, APITimeoutError)


class Retry(Middleware):
    """Retries failed model calls, and tools that are safe to run twice.

    Model calls are retried after rate limits, server errors (408, 409, 429, 5xx), timeouts and lost
    connections, including calls with ``AnthropicProvider`` and ``GeminiProvider``, but not if the account is
    out of credit, nor after text or a tool call of a stream has arrived. The delay grows from
    ``initial_delay`` by ``multiplier`` up to ``max_delay``, with random jitter. If the server sends
    ``Retry-After``, the delay is never shorter, and the jitter is added to it. A delay that would end after
    the run's ``Deadline`` is not started. The SDK makes these retries: the options are added as
    ``ModelSettings.retry``. Values set in the ``RunConfig`` or the agent that starts the run take precedence,
    field by field; settings of handoff targets do not. The clients of models, including OpenAI's, LiteLLM's
    and any-llm's, do not retry by themselves.

    Tools are retried after any exception except errors of this library and of the SDK, such as invalid
    arguments, which a retry cannot fix. Each attempt has its own events and span. Each retry, and each reason
    not to retry, is logged at level info on ``kantan_agents.middleware``.

    In a replay, calls are retried as in the recorded run, without a delay.

    Args:
        attempts: Maximum number of attempts, including the first.
        tools: The tools that are safe to run again: entries as in the ``allow`` list of tool rules, such as
            ``"search"``, ``"mcp__github"`` or ``"bash(git log:*)"``.
        initial_delay: Seconds before the second attempt.
        max_delay: Maximum number of seconds between attempts.
        multiplier: Factor by which the delay grows.
        longest_wait: Maximum ``Retry-After`` in seconds. If the server requests more, the call is not
            retried. The jitter is added to it, at most ``max_delay``.

    Raises:
        InvalidOptionError: E75, an argument has an invalid value.
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
        self._tool_rules = _rules_for(self.tools)
        self._backoff = ModelRetryBackoffSettings(
            initial_delay=checked_number("initial_delay", initial_delay),
            max_delay=checked_number("max_delay", max_delay),
            multiplier=checked_number("multiplier", multiplier),
            jitter=True,
        )
        self._longest_wait = checked_number("longest_wait", longest_wait)
        self._settings = ModelRetrySettings(
            max_retries=attempts - 1,
            backoff=self._backoff,
            policy=_retry_policy(self._backoff, self._longest_wait),
        )

    @property
    def model_settings(self) -> ModelRetrySettings:
        """The same retries of model calls as the SDK's ``ModelSettings(retry=...)``."""
        return self._settings

    async def run(self, run: Run, call_next: Next) -> None:
        """Add the retry settings below the agent's and the ``RunConfig``'s."""
        config = run.run_config
        run.state.setdefault(GIVEN_SETTINGS, config.model_settings)
        given = config.model_settings or ModelSettings()
        retry = self._merged(run.agent.sdk_agent.model_settings.retry, given.retry)
        if run._tape is not None and not run._tape.asks_models:
            retry = dataclasses.replace(retry, policy=_replayed_policy(run._tape))
        config.model_settings = dataclasses.replace(given, retry=retry)
        await call_next(run)

    def _merged(self, *given: ModelRetrySettings | None) -> ModelRetrySettings:
        """The later settings win, field by field."""
        if given == (None, None):
            return self._settings
        merged: Any = ModelSettings(retry=self._settings)
        for settings in given:
            merged = merged.resolve(ModelSettings(retry=settings))
        retry: Any = merged.retry
        if retry.policy is self._settings.policy:
            policy: Any = _retry_policy(retry.backoff, self._longest_wait)
        else:
            policy = _only_policy(retry.policy)
        complete: ModelRetrySettings = dataclasses.replace(retry, policy=policy)
        return complete

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Run the tool; retry it if it fails and is named in ``tools``."""
        # In a replay, the recorded result is the result of the last attempt.
        is_replay = call.run is not None and call.run._tape is not None
        attempts = self.attempts if self.tools and not is_replay and await self._may_repeat(call) else 1
        for attempt in range(1, attempts):
            try:
                return await call_next(call)
            except Exception as error:
                if error is not call.error or isinstance(error, (KantanAgentsError, AgentsException)):
                    raise
                delay = self._delay(attempt)
                if delay >= seconds_left():
                    _log.info(
                        "tool not retried: deadline", tool=call.name, delay=delay, error=loggable(error)
                    )
                    raise
                _log.info("tool failed, trying again", tool=call.name, attempt=attempt, error=loggable(error))
            await anyio.sleep(delay)
        return await call_next(call)

    async def _may_repeat(self, call: ToolCall) -> bool:
        # As for `allow`: a name that a server chooses must not make its tool run twice.
        return (await check_call(self._tool_rules, facts_of_call(call), call.arguments)).allowed

    def _delay(self, attempt: int) -> float:
        return _backoff_delay(self._backoff, attempt) * random.uniform(0.875, 1.0)  # noqa: S311 - nothing secret

    def __repr__(self) -> str:
        tools = f", tools={sorted(self.tools)}" if self.tools else ""
        return f"Retry({self.attempts}{tools})"


def _names(tools: Any) -> frozenset[str]:
    if isinstance(tools, Iterable) and not isinstance(tools, (str, bytes)):
        names = list(tools)
        if all(isinstance(name, str) for name in names):
            return frozenset(names)
    raise InvalidOptionError(option="tools", reason=f"must be names of tools, not {tools!r}")


def _rules_for(tools: frozenset[str]) -> ToolRules:
    try:
        return ToolRules.parse({"allow": tools})
    except InvalidToolRulesError as error:
        reason = "; ".join(problem.removeprefix("allow: ") for problem in error.problems)
        raise InvalidOptionError(option="tools", reason=reason) from None


def _backoff_delay(backoff: ModelRetryBackoffSettings, attempt: int) -> float:
    """Without jitter."""
    initial, longest = backoff.initial_delay or 0.0, backoff.max_delay or 0.0
    try:
        return min(initial * (backoff.multiplier or 0.0) ** (attempt - 1), longest)
    except OverflowError:
        return longest if initial else 0.0


def _spread_delay(asked: float | None, backoff: ModelRetryBackoffSettings, attempt: int) -> float:
    """Return the delay with jitter.

    If a server requests the same wait from many clients, they must not all return at the same time, and none
    too early.
    """
    usual, longest = _backoff_delay(backoff, attempt), backoff.max_delay or 0.0
    if asked is None or asked <= 0:
        return min(usual * random.uniform(0.875, 1.125), longest)  # noqa: S311 - nothing secret
    return asked + random.uniform(0.0, min(max(usual, asked * _SPREAD), longest))  # noqa: S311


def _retry_policy(backoff: ModelRetryBackoffSettings, longest_wait: float) -> _Policy:
    """Retry transient errors, unless the server requests more than ``longest_wait`` seconds."""
    transient: Any = retry_policies.any(
        retry_policies.provider_suggested(),
        retry_policies.network_error(),
        retry_policies.http_status(_STATUSES),
    )

    @functools.wraps(transient)  # the SDK reads attributes of a policy
    async def decide(context: RetryPolicyContext) -> Any:
        error = context.error
        is_late = isinstance(error, AnswerCutOffError) and isinstance(error.__cause__, _LATE)
        if isinstance(error, KantanAgentsError) and not (is_late or isinstance(error, ProviderRequestError)):
            return False
        if is_out_of_credit(error):  # although it has the status of a rate limit
            return False
        decision = True if is_late else transient(context)
        decision = await decision if inspect.isawaitable(decision) else decision
        if not getattr(decision, "retry", decision):
            return decision
        asked = _asked(context)
        if asked is not None and asked > longest_wait:
            _log.info("model call not retried: longest_wait", asked=asked, error=loggable(error))
            return False
        delay = _spread_delay(asked, backoff, context.attempt)
        if delay >= seconds_left():
            _log.info("model call not retried: deadline", delay=delay, error=loggable(error))
            return False
        _log.info(
            "model call failed, trying again", attempt=context.attempt, delay=delay, error=loggable(error)
        )
        await _emit(context, delay)
        if isinstance(decision, RetryDecision):
            decision.delay = delay  # changed in place: it has private fields about the safety of a replay
            return decision
        return RetryDecision(retry=True, delay=delay)

    claim_all_retries(decide)
    return decide


async def _emit(context: RetryPolicyContext, delay: float) -> None:
    run = current_run.get()
    if run is not None and run.events is not None:
        await run.events.emit(
            RetryScheduled,
            agent=active_agent.get(),
            call_id=last_call_id(run),
            delay=delay,
            status=context.normalized.status_code,
            attempt=context.attempt + 1,
            attempts=context.max_retries + 1,
        )


def _replayed_policy(tape: Tape) -> _Policy:
    """Retry a call without a delay if the recorded run did."""

    async def decide(context: RetryPolicyContext) -> Any:
        del context
        return RetryDecision(retry=tape.is_retried, delay=0.0)

    claim_all_retries(decide)
    return decide


def _only_policy(policy: Callable[[RetryPolicyContext], Any]) -> Any:
    """Make a user's policy the only one that retries."""

    @functools.wraps(policy, assigned=())
    def decide(context: RetryPolicyContext) -> Any:
        return policy(context)

    claim_all_retries(decide)
    return decide


def _asked(context: RetryPolicyContext) -> float | None:
    """Return the delay in seconds that the server requests."""
    error = context.error
    own = error.retry_after if isinstance(error, ProviderRequestError) else None
    wait: float | None = context.normalized.retry_after if own is None else own
    return wait
