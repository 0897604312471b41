"""E40 to E49: structured output and judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kantan_agents.errors.root import KantanAgentsError


class JudgmentError(KantanAgentsError):
    """No stage of a ``StatusJudge`` gave the number of a rule as its answer.

    Fix: Use a better model, or add a last condition for everything else. ``attempts`` has each instruction,
    reply and problem.

    Attributes:
        attempts: The stages, in order: ``StageAttempt`` objects with ``stage``,
            ``instruction``, ``reply`` and ``problem``.
    """

    code = "E44"
    template = "No rule was chosen at any stage: {listed}"
    attempts: tuple[Any, ...]

    def __init__(self, *, attempts: Sequence[Any], **_listed: Any) -> None:
        listed = "; ".join(f"{attempt.stage}: {attempt.problem}" for attempt in attempts)
        super().__init__(attempts=tuple(attempts), listed=listed)


class InvalidJudgeRulesError(KantanAgentsError):
    """The rules of a ``StatusJudge`` are empty, or a condition is empty or not a str.

    Fix: Correct each of ``error.problems``.

    Attributes:
        problems: One sentence per mistake, each starting with its position.
    """

    code = "E45"
    template = "Invalid judge rules: {listed}"
    problems: tuple[str, ...]

    def __init__(self, *, problems: Sequence[str], **_listed: Any) -> None:
        super().__init__(problems=tuple(problems), listed="; ".join(problems))


class OutputSchemaError(KantanAgentsError):
    """An output type cannot be expressed as a JSON Schema that a reply can fill.

    Examples: a function, an arbitrary class, ``dict[tuple[int, int], str]``, an ``Iterable``, or a dict that
    is not a valid JSON Schema or refers to another document.

    Fix: Pass a pydantic model, dataclass, TypedDict, attrs class, a ``list`` or union of these, or a JSON
    Schema that has everything it refers to under ``$defs``.

    Attributes:
        output_type: The type.
        reason: The mistake and its position.
    """

    code = "E41"
    template = "{output_type} cannot be an output type: {reason}"
    output_type: str
    reason: str


class StructuredOutputError(KantanAgentsError):
    """No attempt gave an output that matches the output type.

    Also a ``ModelBehaviorError`` of the SDK.

    Fix: Read ``attempts``. Simplify the type, describe its fields, use another model, or raise
    ``output_repairs``. If a reply was cut off, raise ``max_tokens``.

    Attributes:
        output: Name of the output type.
        text: The text of the last reply; None without a reply.
        attempts: The ``OutputAttempt`` objects, in order.
        count: Number of attempts.
        tried: A summary of the attempts.
    """

    code = "E40"
    template = "No valid output for {output} after {count} attempt(s): {tried}"
    output: str
    text: str | None
    attempts: tuple[Any, ...]
    count: int
    tried: str
