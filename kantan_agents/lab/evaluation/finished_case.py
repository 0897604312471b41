"""The run of a case, as evaluators see it."""

from __future__ import annotations

import json
from typing import Any

import attrs

from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.experiment.tool_use import ToolUse


@attrs.frozen
class FinishedCase:
    """The finished run of a case, the argument of an evaluator.

    Attributes:
        case: The case.
        variant: Name of the variant.
        repeat: Number of the repetition, from 0.
        output: The final output: a string, or JSON data for a structured output. None if the run has failed.
        error: The error of a failed run.
        tool_calls: Its tool calls in the order of their starts, including agents that it delegates to.
        seconds: Its duration.
        input_tokens: Input tokens of its model calls.
        output_tokens: Output tokens of its model calls.
        cost: Their price; None without prices.
        model_calls: Number of its model calls.
        trace_id: Id of its trace; None if it was not recorded.
    """

    case: Case
    variant: str
    repeat: int
    output: Any
    error: str | None
    tool_calls: tuple[ToolUse, ...]
    seconds: float
    input_tokens: int
    output_tokens: int
    cost: float | None
    model_calls: int
    trace_id: str | None

    @property
    def expected(self) -> Any:
        """The reference output of the case."""
        return self.case.expected

    @property
    def text(self) -> str:
        """The output as a string: a structured output as JSON, no output as an empty string."""
        if self.output is None:
            return ""
        return self.output if isinstance(self.output, str) else json.dumps(self.output, ensure_ascii=False)
