"""Applies the violation policy and records denials."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import attrs
from agents import custom_span

from kantan_agents.core.interception import end_run_with, record_refusal
from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import InvalidOptionError, KantanAgentsError
from kantan_agents.support.log import get_logger
from kantan_agents.traces.metadata import REFUSAL_SPAN

logger = get_logger("kantan_agents.tools")

Answer = Literal["feedback", "raise"]


@attrs.frozen
class RuleViolation:
    """A call that the rules deny, the argument of ``on_rule_violation``.

    Attributes:
        tool: Name of the tool.
        error: The error of the denied call; ``error.code`` is the E-code.
        rule: The deciding rule, such as ``"deny: fs.*"`` or ``"params: search.query.maxLength"``.
        layers: The layers that contain this rule: ``"base"``, ``"provider NAME"``, ``"explicit"``.
        agent: Name of the agent that called the tool, if known.
        arguments: The model's own arguments, JSON text for a function tool.
        context: The context of the run.
    """

    tool: str
    error: KantanAgentsError
    rule: str
    layers: tuple[str, ...]
    agent: str | None
    arguments: str = attrs.field(repr=False)
    context: Any = attrs.field(repr=False)


RuleViolationPolicy = Answer | Callable[[RuleViolation], "Answer | Awaitable[Answer]"]
"""``"feedback"``, ``"raise"``, or a sync or async function that returns one of them for each violation."""


def checked_policy(policy: Any) -> RuleViolationPolicy:
    """Return ``policy``; E75 unless it is ``"feedback"``, ``"raise"`` or callable."""
    if policy in ("feedback", "raise") or callable(policy):
        return policy  # type: ignore[no-any-return]
    raise InvalidOptionError(
        option="on_rule_violation", reason=f'must be "feedback", "raise" or a function, not {policy!r}'
    )


async def refuse(
    violation: RuleViolation,
    policy: RuleViolationPolicy,
    *,
    sensitive: bool,
    hint: str = "",
    recorded: str | None = None,
) -> str:
    """Record a violation and return the answer that replaces the result; under "raise", raise its error.

    ``sensitive`` permits recording arguments: ``recorded``, or else the violation's. The SDK may wrap a
    raised error or convert it to an answer; ``pending_error`` returns it for the code that aborts the run.
    """
    try:
        answer = await _answer(violation, policy)
    except Exception as error:
        end_run(error)  # the SDK would convert it to an answer for the model
        raise
    _record(violation, answer, (recorded or violation.arguments) if sensitive else None)
    record_refusal(violation.error)
    if answer == "raise":
        end_run(violation.error)
        raise violation.error
    return f"{violation.error}\n{hint}" if hint else str(violation.error)


def end_run(error: Exception) -> None:
    """Abort the run, even if the SDK converts the exception to an answer."""
    run = current_run.get()
    if run is not None:
        end_run_with(run, error)


async def _answer(violation: RuleViolation, policy: RuleViolationPolicy) -> Answer:
    if not callable(policy):
        return policy
    answer: Any = policy(violation)
    if inspect.isawaitable(answer):
        answer = await answer
    if answer not in ("feedback", "raise"):
        raise InvalidOptionError(
            option="on_rule_violation", reason=f'must return "feedback" or "raise", it returned {answer!r}'
        )
    return answer  # type: ignore[no-any-return]


def _record(violation: RuleViolation, answer: Answer, arguments: str | None) -> None:
    data: dict[str, Any] = {
        "tool": violation.tool,
        "code": violation.error.code,
        "rule": violation.rule,
        "layers": list(violation.layers),
        "agent": violation.agent,
        "answer": answer,
    }
    logger.info("tool call refused", **data)
    if arguments is not None:
        data["arguments"] = arguments
    with custom_span(REFUSAL_SPAN, data):
        pass
