"""The result of one run of an experiment, as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs
import msgspec
from typing_extensions import Self

from kantan_agents.lab.experiment.prices import UsageMetrics
from kantan_agents.traces.capture.calls import JSONValue

Status = Literal["same", "wording", "changed", "diverged", "failed"]
STATUSES: Final[tuple[Status, ...]] = ("same", "wording", "changed", "diverged", "failed")
"""From best to worst."""

_NOTHING: Final = UsageMetrics()
DecisionKind = Literal["tool call", "hand-off", "denial", "field", "error"]


@attrs.frozen
class ChangedDecision:
    """A decision that only the replayed run or only the recorded run made, or that differs between them.

    Attributes:
        kind: ``"tool call"``, ``"hand-off"``, ``"denial"``, ``"field"`` of a structured output, or
            ``"error"`` that only one of the two runs raised.
        agent: Name of the agent.
        name: Name of the tool or of the agent that takes over, the path of the field, or the error's class.
        before: The arguments of the call, or the value of the field, in the recorded run; None if missing.
        after: The same in the new run.
    """

    kind: DecisionKind
    agent: str
    name: str
    before: JSONValue
    after: JSONValue


@attrs.frozen
class NewCall:
    """The tool call at which a run left its recording.

    Attributes:
        step: Number of the model call that requested it, from 1.
        agent: Name of the agent.
        tool: Name of the tool.
        arguments: The arguments as the model wrote them, with secrets masked.
        reason: Why the recording does not answer it.
    """

    step: int
    agent: str
    tool: str
    arguments: str
    reason: str


@attrs.frozen
class RunOutcome:
    """A recorded run and its outcome with the change.

    Attributes:
        trace_id: Id of the recorded trace.
        run_id: Id of the recorded run.
        repeat: Number of the repetition, from 0.
        status: ``"same"``; ``"wording"``, only the wording of the answer differs; ``"changed"``, decisions
            differ; ``"diverged"``, it stopped at a call that the recording does not answer; ``"failed"``, it
            raised an error that the recorded run did not raise.
        decisions: The decisions that differ if ``status`` is ``"changed"``. For a run that diverged or
            failed, only the calls that were denied before that and not in the recorded run.
        new_call: The call at which it diverged.
        error: The error that it raised.
        before: Usage of the recorded run.
        after: Usage of this run.
        output_before: The final output of the recorded run, as JSON data.
        output_after: The final output of this run.
        simulated: Names of the tools whose results a model made up.
        live: Names of the tools that really ran.
        replayed_trace_id: Id of the trace of this run; None if no recorder was active. That trace may have
            been pruned since.
    """

    trace_id: str
    run_id: str
    repeat: int
    status: Status
    decisions: tuple[ChangedDecision, ...] = ()
    new_call: NewCall | None = None
    error: str | None = None
    before: UsageMetrics = _NOTHING
    after: UsageMetrics = _NOTHING
    output_before: JSONValue = None
    output_after: JSONValue = None
    simulated: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    replayed_trace_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON data; ``from_dict`` reads it back."""
        lists = ("decisions", "simulated", "live")
        data = attrs.asdict(self)
        return data | {name: list(data[name]) for name in lists}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the outcome of the JSON data that ``to_dict`` returned.

        Raises:
            msgspec.ValidationError: The data is not an outcome.
        """
        return msgspec.convert(_current(data), cls)


def _current(data: Any) -> Any:
    """Return the data of an earlier version, which wrote ``"refusal"`` for a denial, in today's form."""
    if not isinstance(data, dict) or not isinstance(data.get("decisions"), list):
        return data
    decisions = [
        {**one, "kind": "denial"} if isinstance(one, dict) and one.get("kind") == "refusal" else one
        for one in data["decisions"]
    ]
    return {**data, "decisions": decisions}
