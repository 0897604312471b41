"""``Rated``: the outcome of one run with a version, its score, and its mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import attrs
import msgspec
from typing_extensions import Self

from kantan_agents.lab.evaluation import Case, CaseResult, ToolUse
from kantan_agents.lab.improve.parts import RecordedSource
from kantan_agents.lab.replay import ChangedDecision, RunOutcome
from kantan_agents.lab.replay.answers_from_recording import plain_arguments
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture import RunRecord, ToolCallRecord
from kantan_agents.traces.capture.calls import JSONValue
from kantan_agents.traces.capture.canonical import decode
from kantan_agents.traces.recorder.masking import mask_data
from kantan_agents.traces.recorder.plain_json import encode_anything

_INVALID: Final = "[kantan-agents][E40]"
RatedStatus = Literal["recorded", "same", "wording", "changed", "diverged", "failed", "not run"]


@attrs.frozen
class Rated:
    """One run and its score.

    ``value`` is 0 without a score, and ``unscored`` is why the judge gave none. ``refused`` has tools whose
    calls were denied, and not in the recorded run.
    """

    case_id: str
    value: float
    status: RatedStatus
    feedback: tuple[str, ...] = ()
    comment: str | None = None
    refused: tuple[str, ...] = ()
    is_invalid: bool = False
    output: JSONValue = None
    error: str | None = None
    trace_id: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    model_calls: int = 0
    cost: float | None = None
    judge_tokens: int = 0
    judge_cost: float | None = None
    unscored: str | None = None

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens

    @property
    def has_ended(self) -> bool:
        """Whether the run finished by itself, so that its usage is comparable."""
        return self.status in ("same", "wording", "changed") and self.error is None

    def withheld(self) -> Self:
        """Return it without inputs and outputs."""
        error, unscored = [one and one.partition(":")[0] for one in (self.error, self.unscored)]
        return attrs.evolve(self, output=None, comment=None, error=error, unscored=unscored, feedback=())

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data; ``from_dict`` reads it back."""
        return {**attrs.asdict(self), "feedback": list(self.feedback), "refused": list(self.refused)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the value of such data."""
        return msgspec.convert(data, cls)


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value."""
    return sum(values) / len(values)


def feedback_of(rated: Rated, perfect: float) -> tuple[str, ...]:
    """Return the mistakes of a run, most important first."""
    found = [
        f"The call of the tool {name} was denied by the tool rules. It must not be made."
        for name in rated.refused
    ]
    if rated.is_invalid:
        found.append(f"The output did not fit its schema: {rated.error}")
    elif rated.status == "diverged":
        found.append(
            f"The run made a tool call that the recorded run had not made, and ended there: {rated.error}"
        )
    elif rated.error is not None:
        found.append(f"The run failed: {rated.error}")
    elif rated.unscored is not None:
        found.append("The judge gave no score for this run, which says nothing about it.")
    else:
        found.append(f"Score {rated.value:g} of {perfect:g}.")
    if rated.comment:
        found.append(rated.comment)
    return tuple(found)


def masked(value: Any) -> Any:
    """Return JSON data with secrets masked, by their form and by their names."""
    return mask_data(decode(encode_anything(value)), mask)


def recorded_run(source: RecordedSource) -> tuple[Rated, tuple[ToolUse, ...]]:
    """Return the recorded outcome and tool calls, at no cost."""
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
    return rated, tuple(map(_use, record.tool_calls))


def repeated_run(source: RecordedSource, outcome: RunOutcome) -> tuple[Rated, tuple[ToolUse, ...]]:
    """Return the outcome and tool calls of a repeated run, with secrets masked."""
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
                one.name for one in outcome.decisions if one.kind == "denial" and one.before is None
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
    """Return a run as a result of an evaluation, without scores."""
    return CaseResult(
        case.id,
        case.hash,
        case.conversation,
        version,
        0,
        "finished",  # a failed one too, with the score 0: it must not be reported as unscored
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


def _tool_uses_after(record: RunRecord, outcome: RunOutcome) -> tuple[ToolUse, ...]:
    """Return the tool calls of a candidate's run: the recorded ones, with the changed decisions."""
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
    refused = {(one.agent, one.name) for one in outcome.decisions if _is_new(one, "denial")}
    new = [one for one in outcome.decisions if _is_new(one, "tool call")]
    return (*kept, *(_new_use(one, refused) for one in new))


def _key(one: ChangedDecision, arguments: Any) -> tuple[str, str, bytes]:
    return one.agent, one.name, plain_arguments(str(arguments))


def _is_new(one: ChangedDecision, kind: str) -> bool:
    return one.kind == kind and one.before is None


def _new_use(one: ChangedDecision, refused: Iterable[tuple[str, str]]) -> ToolUse:
    return ToolUse(one.name, _data(str(one.after)), None, one.agent, (one.agent, one.name) in refused)


def _use(call: ToolCallRecord) -> ToolUse:
    is_denied = call.decision is not None and not call.decision.is_allowed
    output = None if call.output is None or is_denied else str(call.output)
    return ToolUse(call.tool.name, _data(call.arguments), output, call.agent, is_denied)


def _data(text: str) -> Any:
    try:
        return decode(text)
    except (ValueError, RecursionError):
        return text
