"""Turns recorded and repeated runs into results without a score, and shows them to evaluators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from kantan_agents.lab.evaluation import Case, CaseResult, ToolUse
from kantan_agents.lab.improve.parts import RecordedSource
from kantan_agents.lab.improve.rated import Rated, masked
from kantan_agents.lab.replay import ChangedDecision, RunOutcome
from kantan_agents.lab.replay.answers_from_recording import plain_arguments
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture import RunRecord, ToolCallRecord
from kantan_agents.traces.capture.canonical import decode

_INVALID: Final = "[kantan-agents][E40]"


def recorded_run(source: RecordedSource) -> tuple[Rated, tuple[ToolUse, ...]]:
    """Return what was recorded, and the tool calls. It costs nothing, as it does not run again."""
    record = source.record
    error = None if record.error is None else f"{record.error.type}: {record.error.message}"
    rated = Rated(
        source.case.id,
        0.0,
        "recorded",
        is_invalid=record.error is not None and record.error.code == "E40",
        output=masked(record.output),
        error=None if error is None else mask(error),
        trace_id=source.trace_id,
    )
    return rated, _recorded_tool_uses(record)


def repeated_run(source: RecordedSource, outcome: RunOutcome) -> tuple[Rated, tuple[ToolUse, ...]]:
    """Return what became of a recorded run with a version, and the tool calls; secrets are masked."""
    error = outcome.error
    if outcome.new_call is not None:
        call = outcome.new_call
        error = f"step {call.step}: {call.tool}({call.arguments}): {call.reason}"
    after = outcome.after
    rated = Rated(
        source.case.id,
        0.0,
        outcome.status,
        refused=tuple(
            dict.fromkeys(
                one.name for one in outcome.decisions if one.kind == "refusal" and one.before is None
            )
        ),
        is_invalid=outcome.status == "failed" and (outcome.error or "").startswith(_INVALID),
        output=masked(outcome.output_after),
        error=None if error is None else mask(error),
        trace_id=outcome.replayed_trace_id,
        input_tokens=after.input_tokens,
        output_tokens=after.output_tokens,
        seconds=after.seconds,
        model_calls=after.model_calls,
        cost=after.cost,
    )
    return rated, _tool_uses_after(source.record, outcome)


def result_of(rated: Rated, case: Case, version: str, tool_calls: tuple[ToolUse, ...] = ()) -> CaseResult:
    """Return the run of a case with a version of the prompt as one of an evaluation, without scores."""
    return CaseResult(
        case.id,
        case.hash,
        case.conversation,
        version,
        0,
        "finished",  # with the score 0 if it has failed, so that it is not reported as one without a score
        rated.output,
        rated.error,
        rated.trace_id,
        rated.seconds,
        rated.input_tokens,
        rated.output_tokens,
        rated.cost,
        rated.model_calls,
        tool_calls,
    )


def _recorded_tool_uses(record: RunRecord) -> tuple[ToolUse, ...]:
    """Return the tool calls of a recorded run."""
    return tuple(_use(call) for call in record.tool_calls)


def _tool_uses_after(record: RunRecord, outcome: RunOutcome) -> tuple[ToolUse, ...]:
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
