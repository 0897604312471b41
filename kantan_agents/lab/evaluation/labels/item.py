"""A result as a reviewer sees it, before and after the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.lab.experiment.tool_use import ToolUse


@attrs.frozen
class LabelItem:
    """A result to label, without its scores and its variant.

    Attributes:
        number: Its position in the queue, from 1.
        case_id: Id of the case.
        input: The user's input: a string, or a list of input items.
        context: The values of the run's context.
        expected: The reference output; None if unknown.
        output: The final output: a string, or JSON data.
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
    """A labeled result.

    Attributes:
        item: The result.
        value: The stored value, from 0 to 1.
        label: A word or a grade for it.
        scores: The evaluators' scores of the result, by metric.
        variants: The variants of all results of the same run, by item number. Empty until all of them are
            labeled, because one variant's name would reveal the other.
    """

    item: LabelItem
    value: float
    label: str | None
    scores: Mapping[str, Score]
    variants: Mapping[int, str]
