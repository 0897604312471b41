"""What a person is shown of a result, before the answer and after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.lab.experiment.tool_use import ToolUse


@attrs.frozen
class LabelItem:
    """A result that a person is asked about: neither its scores nor its variant.

    Attributes:
        number: Its place in the queue, from 1.
        case_id: Id of the case.
        input: The user's input: a text, or a list of input items.
        context: The values of the run's context.
        expected: The reference output; None if there is none.
        output: The final output: a text, or JSON data.
        tool_calls: The tool calls.
    """

    number: int
    case_id: str
    input: str | Sequence[Mapping[str, Any]]
    context: Mapping[str, Any]
    expected: Any
    output: Any
    tool_calls: tuple[ToolUse, ...]


@attrs.frozen
class LabelledItem:
    """A result that a person has answered about.

    Attributes:
        item: The result.
        value: The answer as it is stored, from 0 to 1.
        label: A word or a grade for it.
        scores: What evaluators say about the result, by metric.
        variants: The variants of all results of the same run, by the number of their item. It is empty as
            long as one of them waits, because the name of one variant would tell the other.
    """

    item: LabelItem
    value: float
    label: str | None
    scores: Mapping[str, Score]
    variants: Mapping[int, str]
