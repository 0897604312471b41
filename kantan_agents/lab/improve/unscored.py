"""Turns recorded and repeated runs into results that have no score yet."""

from __future__ import annotations

from typing import Final

from kantan_agents.lab.evaluation.finished import ToolUse
from kantan_agents.lab.improve.finished_runs import recorded_tool_uses, tool_uses_after
from kantan_agents.lab.improve.masked import masked
from kantan_agents.lab.improve.parts import Source
from kantan_agents.lab.improve.rated import Rated
from kantan_agents.lab.replay.experiment import RunOutcome
from kantan_agents.support.secrets import mask

_INVALID: Final = "[kantan-agents][E40]"


def recorded_run(source: Source) -> tuple[Rated, tuple[ToolUse, ...]]:
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
    return rated, recorded_tool_uses(record)


def repeated_run(source: Source, outcome: RunOutcome) -> tuple[Rated, tuple[ToolUse, ...]]:
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
    return rated, tool_uses_after(source.record, outcome)
