"""Limits on the answers of the library's own model calls, such as judges."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Final

import anyio
from agents import ModelBehaviorError, ModelResponse
from openai import APITimeoutError

from kantan_agents.agent.agent import Agent
from kantan_agents.agent.bridge.model_answers import is_cut_off
from kantan_agents.core.interception import Middleware, ModelCall, ModelNext
from kantan_agents.errors import AnswerCutOffError
from kantan_agents.models.structured.requests.refusals import REFUSALS, described, message_and_details
from kantan_agents.support.log import get_logger
from kantan_agents.support.own_calls import MOST_SECONDS, MOST_TOKENS

_LIMITS: Final = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "num_predict",
    "generationConfig",
)
_ABOUT_LIMIT: Final = re.compile(
    r"max[\w -]{0,40}tokens|output.tokens|context.{0,20}(length|window|size|limit)", re.IGNORECASE
)
_log = get_logger("kantan_agents.own_calls")


class AnswerLimit(Middleware):
    """Limits the tokens and the time of answers, and rejects one that was cut off.

    JSON without its end is still read, so a verdict that was cut off can be wrong. This is the innermost
    middleware, so that a ``Budget`` and a ``Cache`` see the original settings. Settings with limits retain
    them.
    """

    def __init__(self, tokens: int = MOST_TOKENS, seconds: float = MOST_SECONDS) -> None:
        self._tokens = tokens
        self._seconds = seconds
        self._is_refused = False

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Call the model with a limit; E206 if the answer reaches it."""
        given = call.settings
        if self._is_refused or _has_limit(given):
            return await self._complete(call, call_next)
        call.settings = dataclasses.replace(given, max_tokens=self._tokens)
        try:
            return await self._complete(call, call_next)
        except REFUSALS as error:
            if not _ABOUT_LIMIT.search(message_and_details(error)):
                raise
            refusal = described(error)
        finally:
            call.settings = given  # for another attempt, perhaps with another model
        answer = await self._complete(call, call_next)
        # Only now it is certain that the limit was the reason, not a conversation that is too long.
        self._is_refused = True
        _log.warning("answer_limit_refused", agent=call.agent, reason=refusal)
        return answer

    async def _complete(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        given = _timeout_of(call.settings)
        cause: Exception = TimeoutError()  # shows `Retry` that another attempt may be faster
        seconds = self._seconds if given is None else given
        try:
            with anyio.move_on_after(seconds):
                return await _whole_answer(call, call_next)
        except APITimeoutError as error:
            if given is None:
                raise
            cause = error  # the client has the same limit
        limit, setting = f"{seconds:,g} seconds", 'extra_args={"timeout": seconds}'
        raise AnswerCutOffError(agent=call.agent, limit=limit, setting=setting) from cause


def limited(agent: Agent[Any]) -> Agent[Any]:
    """Return a limited copy of an agent, with the same observers."""
    copied = agent.clone(middleware=[*agent.given.middleware, AnswerLimit()])
    copied.observers = agent.observers
    return copied


def _has_limit(settings: Any) -> bool:
    others = (settings.extra_args, settings.extra_body)
    return settings.max_tokens is not None or any(
        name in one for one in others if isinstance(one, Mapping) for name in _LIMITS
    )


def _timeout_of(settings: Any) -> float | None:
    """Return a request's timeout in seconds; httpx timeouts only limit the wait for bytes."""
    given = (settings.extra_args or {}).get("timeout")
    return float(given) if isinstance(given, (int, float)) and given > 0 else None


async def _whole_answer(call: ModelCall, call_next: ModelNext) -> ModelResponse:
    most = call.settings.max_tokens
    try:
        answer = await call_next(call)
    except ModelBehaviorError as error:  # raised for answers of the Responses API over a websocket
        if "reason='max_output_tokens'" not in str(error):
            raise
        cause: Exception | None = error
    else:
        if not is_cut_off(answer, most):
            return answer
        cause = None
    limit = "the limit of its provider" if most is None else f"{most:,} tokens"
    raise AnswerCutOffError(agent=call.agent, limit=limit, setting="max_tokens") from cause
