"""``AnswerLimit``: a limit on the answers of models that the library asks by itself, such as judges."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Final

from agents import ModelBehaviorError, ModelResponse

from kantan_agents.agent import Agent
from kantan_agents.agent.bridge.model_answers import is_cut_off
from kantan_agents.core.interception import Middleware, ModelCall, ModelNext
from kantan_agents.errors import AnswerCutOffError
from kantan_agents.models.structured.requests.refusals import REFUSALS, described, message_and_details
from kantan_agents.support.log import get_logger

MOST_TOKENS: Final = 8_192
"""The most tokens of an answer, with its reasoning, where the settings set none: room for long thoughts."""

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
_log = get_logger("kantan_agents.judges")


class AnswerLimit(Middleware):
    """Sets ``max_tokens`` where the settings have no limit, and refuses an answer that was cut off.

    A verdict that was cut off can be wrong, because JSON without its end is still read. It is the innermost
    middleware, so that a ``Budget`` and a ``Cache`` see the settings that were given. A provider that refuses
    the limit is asked without one.

    Args:
        most: The limit.
    """

    def __init__(self, most: int = MOST_TOKENS) -> None:
        self._most = most
        self._is_refused = False

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Call the model with a limit.

        Raises:
            AnswerCutOffError: E206, the answer has reached it.
        """
        given = call.settings
        if self._is_refused or _has_limit(given):
            return await _complete(call, call_next)
        call.settings = dataclasses.replace(given, max_tokens=self._most)
        try:
            return await _complete(call, call_next)
        except REFUSALS as error:
            if not _ABOUT_LIMIT.search(message_and_details(error)):
                raise
            refusal = described(error)
        finally:
            call.settings = given  # for another attempt, perhaps with another model
        answer = await _complete(call, call_next)
        # Only now it is certain that the limit was the reason, and not a conversation that is too long.
        self._is_refused = True
        _log.warning("answer_limit_refused", agent=call.agent, reason=refusal)
        return answer


def limited(agent: Agent[Any]) -> Agent[Any]:
    """Return a copy of an agent that notifies the same handlers and whose answers are limited."""
    copied = agent.clone(middleware=[*agent.given.middleware, AnswerLimit()])
    copied.observers = agent.observers
    return copied


def _has_limit(settings: Any) -> bool:
    others = (settings.extra_args, settings.extra_body)
    return settings.max_tokens is not None or any(
        name in one for one in others if isinstance(one, Mapping) for name in _LIMITS
    )


async def _complete(call: ModelCall, call_next: ModelNext) -> ModelResponse:
    most = call.settings.max_tokens
    try:
        answer = await call_next(call)
    except ModelBehaviorError as error:  # the SDK 0.21 and newer raises it for answers of the Responses API
        if "reason='max_output_tokens'" not in str(error):
            raise
        cause: Exception | None = error
    else:
        if not is_cut_off(answer, most):
            return answer
        cause = None
    limit = "the limit of its provider" if most is None else f"{most:,} tokens"
    raise AnswerCutOffError(agent=call.agent, limit=limit) from cause
