"""``Retry``: retry failed model calls and tools."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable
from typing import Any

import anyio
from agents import ModelRetryBackoffSettings, ModelRetrySettings, ModelSettings
from agents.exceptions import AgentsException

from kantan_agents.core.interception import Middleware, ToolCall, ToolNext
from kantan_agents.core.pipeline import Next, Run, loggable
from kantan_agents.errors import InvalidOptionError, InvalidToolRulesError, KantanAgentsError
from kantan_agents.middleware.deadline import seconds_left
from kantan_agents.middleware.retry_policy import backoff_delay, only_policy, replayed_policy, retry_policy
from kantan_agents.support.arguments import checked_int, checked_number
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import ToolRules
from kantan_agents.tools.facts import facts_of_call
from kantan_agents.tools.guards.check import check_call

_log = get_logger("kantan_agents.middleware")

GIVEN_SETTINGS = object()
"""Key of the state of a run: the model settings of the caller's ``RunConfig``, which ``Retry`` replaces."""


class Retry(Middleware):
    """Retries failed model calls, and tools that are safe to run twice.

    Model calls are retried after rate limits, server errors, timeouts and lost connections, also with
    ``AnthropicProvider`` and ``GeminiProvider``. The delay grows from ``initial_delay`` by ``multiplier`` up
    to ``max_delay``, with random jitter. If the server sends ``Retry-After``, the delay is never shorter, and
    the jitter is added to it. A delay that would end after the run's ``Deadline`` is not begun. The SDK makes
    these retries: the options are added as ``ModelSettings.retry``, and values set in the ``RunConfig`` or
    the agent take precedence. The clients of models do not retry by themselves.

    Tools are retried after any exception except errors of this library and of the SDK, such as invalid
    arguments, which a retry cannot fix.

    In a replay, calls are retried as in the recorded run, without a delay.

    Args:
        attempts: Maximum number of attempts, including the first.
        tools: The tools that are safe to run again: entries as in the ``allow`` list of tool rules, such as
            ``"search"``, ``"mcp__github"`` or ``"bash(git log:*)"``.
        initial_delay: Seconds before the second attempt.
        max_delay: Maximum number of seconds between attempts.
        multiplier: Factor by which the delay grows.
        longest_wait: Maximum ``Retry-After`` in seconds. A call is not retried if the server asks for more.
            The jitter is added to it, at most ``max_delay``.

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
            policy=retry_policy(self._backoff, self._longest_wait),
        )

    @property
    def model_settings(self) -> ModelRetrySettings:
        """The same for model calls as settings of the SDK: ``ModelSettings(retry=...)``."""
        return self._settings

    async def run(self, run: Run, call_next: Next) -> None:
        """Add the retry settings beneath those of the agent and the ``RunConfig``."""
        config = run.run_config
        run.state.setdefault(GIVEN_SETTINGS, config.model_settings)
        given = config.model_settings or ModelSettings()
        retry = self._merged(run.agent.sdk_agent.model_settings.retry, given.retry)
        if run.tape is not None and not run.tape.asks_models:
            retry = dataclasses.replace(retry, policy=replayed_policy(run.tape))
        config.model_settings = dataclasses.replace(given, retry=retry)
        await call_next(run)

    def _merged(self, *given: ModelRetrySettings | None) -> ModelRetrySettings:
        """Return the retry settings with the user's values, of which the later ones win, field by field."""
        if given == (None, None):
            return self._settings
        merged: Any = ModelSettings(retry=self._settings)
        for settings in given:
            merged = merged.resolve(ModelSettings(retry=settings))
        retry: Any = merged.retry
        if retry.policy is self._settings.policy:
            policy: Any = retry_policy(retry.backoff, self._longest_wait)
        else:
            policy = only_policy(retry.policy)
        complete: ModelRetrySettings = dataclasses.replace(retry, policy=policy)
        return complete

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Run the tool, and retry it if it fails and is named in ``tools``."""
        # In a replay, the recorded result is that of the last attempt.
        is_replay = call.run is not None and call.run.tape is not None
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
        # As for `allow`: a name that a server has chosen must not make a tool of it run twice.
        return (await check_call(self._tool_rules, facts_of_call(call), call.arguments)).allowed

    def _delay(self, attempt: int) -> float:
        return backoff_delay(self._backoff, attempt) * random.uniform(0.875, 1.0)  # noqa: S311 - nothing secret

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
