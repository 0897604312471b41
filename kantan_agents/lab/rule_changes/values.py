"""The answer of ``what_if``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import attrs

from kantan_agents.traces.capture import RecordedDecision


@attrs.frozen
class Flip:
    """A recorded tool call that other rules would decide differently.

    Attributes:
        trace_id: Id of its trace.
        run_id: Id of its run.
        call_id: The model's id of the call.
        agent: Name of the agent whose model made the call.
        tool: Name of the tool.
        arguments: The recorded arguments, with secrets masked.
        started_at: When the call started, in UTC.
        before: The recorded decision, with its rule and layers.
        after: The decision under the other rules.
        is_first: Whether no earlier decision in its run, or in a run around it, flips. The calls after the
            first flip might not have happened under the other rules.
    """

    trace_id: str
    run_id: str
    call_id: str
    agent: str
    tool: str
    arguments: str
    started_at: datetime
    before: RecordedDecision
    after: RecordedDecision
    is_first: bool

    @property
    def is_allowed(self) -> bool:
        """Whether the call is newly allowed; otherwise it is newly denied."""
        return self.after.is_allowed


@attrs.frozen
class FlipCounts:
    """The number of decisions that flip.

    Attributes:
        newly_denied: Number of calls that were allowed and would be denied.
        newly_allowed: Number of calls that were denied and would be allowed.
    """

    newly_denied: int = 0
    newly_allowed: int = 0


@attrs.frozen
class UnjudgedCall:
    """A recorded tool call that is not compared, because its record is incomplete.

    Attributes:
        trace_id: Id of its trace.
        run_id: Id of its run.
        call_id: The model's id of the call.
        agent: Name of the agent whose model made the call.
        tool: Name of the tool.
        reason: The missing facts.
    """

    trace_id: str
    run_id: str
    call_id: str
    agent: str
    tool: str
    reason: str


@attrs.frozen
class IncompleteTrace:
    """A trace that is not recorded completely, so that some calls may be missing.

    Attributes:
        trace_id: Id of the trace.
        missing: The parts that are not recorded, by run.
    """

    trace_id: str
    missing: Sequence[str]


@attrs.frozen
class WhatIf:
    """The result of ``what_if``: how other rules would decide the recorded calls.

    Attributes:
        flips: The calls whose decisions differ, in the order of the traces and, in each run, of the calls.
        runs: Number of runs with a record.
        judged: Number of calls that were compared.
        after_flip: Number of compared calls that follow the first flip of their run.
        invalid: Number of calls that failed regardless of the rules: of unknown tools (E21), or with
            arguments that are not a JSON object (E10).
        unjudged: The calls that could not be compared.
        incomplete: The traces that are not recorded completely.
    """

    flips: Sequence[Flip]
    runs: int
    judged: int
    after_flip: int
    invalid: int
    unjudged: Sequence[UnjudgedCall]
    incomplete: Sequence[IncompleteTrace]

    @property
    def newly_denied(self) -> Sequence[Flip]:
        """The calls that were allowed and would be denied."""
        return tuple(flip for flip in self.flips if not flip.is_allowed)

    @property
    def newly_allowed(self) -> Sequence[Flip]:
        """The calls that were denied and would be allowed."""
        return tuple(flip for flip in self.flips if flip.is_allowed)

    @property
    def by_tool(self) -> Mapping[str, FlipCounts]:
        """The numbers of flips by the name of the tool, the highest first."""
        return self._counts(lambda flip: flip.tool)

    @property
    def by_agent(self) -> Mapping[str, FlipCounts]:
        """The numbers of flips by the name of the agent, the highest first."""
        return self._counts(lambda flip: flip.agent)

    def _counts(self, name_of: Callable[[Flip], str]) -> Mapping[str, FlipCounts]:
        refused: dict[str, int] = {}
        allowed: dict[str, int] = {}
        for flip in self.flips:
            counted = allowed if flip.is_allowed else refused
            counted[name_of(flip)] = counted.get(name_of(flip), 0) + 1
        names = sorted(
            refused.keys() | allowed.keys(),
            key=lambda name: (-refused.get(name, 0) - allowed.get(name, 0), name),
        )
        return {name: FlipCounts(refused.get(name, 0), allowed.get(name, 0)) for name in names}
