"""E40 to E49: structured output and judging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kantan_agents.errors.root import KantanAgentsError


class JudgementError(KantanAgentsError):
    """No stage of a judgement brought a valid answer, so nobody knows which rule is met.

    Attributes:
        attempts: The stages that were tried, in order: ``StageAttempt`` objects with ``stage``,
            ``instruction``, ``reply`` and ``problem``.
    """

    code = "E44"
    template = "No stage of the judgement decided: {listed}"
    attempts: tuple[Any, ...]

    def __init__(self, *, attempts: Sequence[Any], **_listed: Any) -> None:
        listed = "; ".join(f"{attempt.stage}: {attempt.problem}" for attempt in attempts)
        super().__init__(attempts=tuple(attempts), listed=listed)


class InvalidJudgingRulesError(KantanAgentsError):
    """The rules of a ``StatusJudge`` have mistakes; all of them are listed.

    Attributes:
        problems: One sentence per mistake, each beginning with its place.
    """

    code = "E45"
    template = "Invalid judging rules: {listed}"
    problems: tuple[str, ...]

    def __init__(self, *, problems: Sequence[str], **_listed: Any) -> None:
        super().__init__(problems=tuple(problems), listed="; ".join(problems))


class OutputSchemaError(KantanAgentsError):
    """An output type cannot be expressed as a JSON schema, or is none that is valid.

    Attributes:
        output_type: The type.
        reason: What is wrong with it, and where.
    """

    code = "E41"
    template = "{output_type} cannot be an output type: {reason}"
    output_type: str
    reason: str


class StructuredOutputError(KantanAgentsError):
    """A model has come to no output that fits the output type, whatever was tried.

    It is a ``ModelBehaviorError`` of the SDK as well.

    Attributes:
        output: Name of the output type.
        text: The last reply, as the model wrote it; None if there was none.
        attempts: The ``OutputAttempt`` of each try, in order.
        count: How many attempts there were.
        tried: The attempts in words.
    """

    code = "E40"
    template = "No output that fits {output} after {count} attempt(s): {tried}"
    output: str
    text: str | None
    attempts: tuple[Any, ...]
    count: int
    tried: str
