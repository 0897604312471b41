"""Shows a recorded run, or what became of it with a candidate, to evaluators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kantan_agents.lab.evaluation.finished import FinishedCase, ToolUse
from kantan_agents.lab.improve.parts import Source
from kantan_agents.lab.improve.rated import Rated
from kantan_agents.lab.replay.experiment.outcome import ChangedDecision, RunOutcome
from kantan_agents.lab.replay.tape import plain_arguments
from kantan_agents.traces.capture import RunRecord, ToolCallRecord
from kantan_agents.traces.capture.canonical import decode


def finished_run(source: Source, version: str, rated: Rated, tool_calls: tuple[ToolUse, ...]) -> FinishedCase:
    """Return a run as evaluators see it.

    Args:
        source: The recorded run.
        version: The version of the prompt.
        rated: What became of the run, not scored yet.
        tool_calls: Its tool calls.
    """
    return FinishedCase(
        source.case,
        version,
        0,
        rated.output,
        rated.error,
        tool_calls,
        rated.seconds,
        rated.input_tokens,
        rated.output_tokens,
        rated.cost,
        rated.model_calls,
        rated.trace_id,
    )


def recorded_tool_uses(record: RunRecord) -> tuple[ToolUse, ...]:
    """Return the tool calls of a recorded run."""
    return tuple(_use(call) for call in record.tool_calls)


def tool_uses_after(record: RunRecord, outcome: RunOutcome) -> tuple[ToolUse, ...]:
    """Return the tool calls of a run with a candidate: the recorded ones, with the decisions that differ."""
    gone = Counter(
        _key(one, one.before)
        for one in outcome.decisions
        if one.kind == "tool call" and one.before is not None
    )
    kept: list[ToolUse] = []
    for call in record.tool_calls:
        key = (call.agent, call.tool.name, plain_arguments(call.arguments))
        if gone[key]:
            gone[key] -= 1
            continue
        kept.append(_use(call))
    refused = {(one.agent, one.name) for one in outcome.decisions if _is_new(one, "refusal")}
    new = [one for one in outcome.decisions if _is_new(one, "tool call")]
    return (*kept, *(_new_use(one, refused) for one in new))


def _key(one: ChangedDecision, arguments: Any) -> tuple[str, str, bytes]:
    return one.agent, one.name, plain_arguments(str(arguments))


def _is_new(one: ChangedDecision, kind: str) -> bool:
    return one.kind == kind and one.before is None


def _new_use(one: ChangedDecision, refused: Iterable[tuple[str, str]]) -> ToolUse:
    return ToolUse(one.name, _data(str(one.after)), None, one.agent, (one.agent, one.name) in refused)


def _use(call: ToolCallRecord) -> ToolUse:
    is_refused = call.decision is not None and not call.decision.is_allowed
    output = None if call.output is None or is_refused else str(call.output)
    return ToolUse(call.tool.name, _data(call.arguments), output, call.agent, is_refused)


def _data(text: str) -> Any:
    try:
        return decode(text)
    except (ValueError, RecursionError):
        return text
