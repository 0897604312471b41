"""Re-decides recorded tool calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from kantan_agents.errors import InvalidOptionError, NoRecordedCallsError
from kantan_agents.lab.rule_changes.judge_calls import Judge, Judgment, NotJudgedError
from kantan_agents.lab.rule_changes.recorded_rules import RecordedRules
from kantan_agents.lab.rule_changes.replaced_rules import Callers, RecordedRun, Replacement
from kantan_agents.lab.rule_changes.values import Flip, IncompleteTrace, UnjudgedCall, WhatIf
from kantan_agents.tool_rules import BASE, EXPLICIT, ToolRules, ToolRulesMode, rules_of
from kantan_agents.traces.capture import ToolCallRecord


class RecordedTrace(Protocol):
    """A ``StoredTrace``, or an item of ``TraceStore.recorded_calls``."""

    @property
    def trace_id(self) -> str:
        """Id of the trace."""
        ...

    @property
    def runs(self) -> Sequence[RecordedRun]:
        """Its runs."""
        ...

    @property
    def missing(self) -> Sequence[str]:
        """The parts that are not recorded."""
        ...


def what_if(
    rules: ToolRulesMode | Mapping[str, Any], traces: Iterable[RecordedTrace], *, layer: str = EXPLICIT
) -> WhatIf:
    """Return the recorded tool calls that other tool rules would have decided differently.

    Every recorded call is decided twice, with the rules that were in force and with ``rules`` in place of one
    of their layers. No model and no tool runs. The answer is exact for each judged call: a call whose
    recorded rules do not explain the recorded decision is listed in ``unjudged`` instead. For a run as a
    whole it is exact up to its first flip, since the model might have continued differently.

    A call is not judged if a middleware answered it, denied it or changed its arguments; if the rules look at
    arguments that are masked or redacted; if the tool was disabled or omitted in that turn; if a user ran it
    with a slash command; or if a check takes longer than 20 seconds. Calls of unknown tools (E21) and with
    invalid JSON (E10) count as ``invalid``. Hosted tools make no recorded calls.

    To omit the runs of experiments, filter with ``metadata={"kantan_agents_experiment": None}``.

    Args:
        rules: A ``ToolRulesMode``, or rules of the shape ``{"allow": ..., "deny": ..., "params": {...}}``.
        traces: The traces: ``store.recorded_calls(...)``, which is fast, or values of ``store.trace``. Pass
            all of a trace; the limits of delegated runs follow from the rules of the runs above them.
        layer: Name of the layer that ``rules`` replaces: ``"explicit"``, the ``tool_rules`` of the context,
            ``"base"``, or ``"provider NAME"``. The other layers and all limits stay as recorded, except
            limits that a delegated run has inherited from this layer.

    Raises:
        UnknownToolRulesModeError, ToolRulesTypeError, InvalidToolRulesError: E9, E18, E20, ``rules`` cannot
            be read.
        InvalidOptionError: E75, no recorded call has the layer.
        NoRecordedCallsError: E99, the traces have no call that can be judged.
        TraceDatabaseError: E60, the file of ``traces`` cannot be read.
    """
    if not isinstance(layer, str) or not layer:
        raise InvalidOptionError(option="layer", reason=f"must be the name of a layer, not {layer!r}")
    question = _Question(layer, ToolRules.parse(rules_of(rules)))
    for trace in traces:
        question.ask(trace)
    return question.answer()


class _Question:
    def __init__(self, layer: str, rules: ToolRules) -> None:
        self._layer = layer
        recorded = RecordedRules()
        self._replacement = Replacement(layer, rules, recorded)
        self._judge = Judge(recorded, self._replacement)
        self._flips: list[Flip] = []
        self._unjudged: list[UnjudgedCall] = []
        self._incomplete: list[IncompleteTrace] = []
        self._runs = self._judged = self._after_flip = self._invalid = 0

    def ask(self, trace: RecordedTrace) -> None:
        if trace.missing:
            self._incomplete.append(IncompleteTrace(trace.trace_id, tuple(trace.missing)))
        above = Callers(trace.runs)
        judged = {run.id: self._judgements(trace.trace_id, run, above) for run in trace.runs}
        order = _Order(judged, above)
        for run in trace.runs:
            self._runs += 1
            for place, (call, judgement) in enumerate(judged[run.id]):
                follows = order.follows_flip(run, place)
                self._judged += 1
                self._after_flip += follows
                if judgement.is_flip:
                    flip = _flip(trace.trace_id, run.id, call, judgement, is_first=not follows)
                    self._flips.append(flip)

    def _judgements(
        self, trace_id: str, run: RecordedRun, above: Callers
    ) -> list[tuple[ToolCallRecord, Judgment]]:
        judged = []
        for call in run.tool_calls:
            try:
                judgement = self._judge.judge(call, run, above)
            except NotJudgedError as error:
                self._unjudged.append(
                    UnjudgedCall(trace_id, run.id, call.call_id, call.agent, call.tool.name, str(error))
                )
                continue
            if judgement is None:
                self._invalid += 1
            else:
                judged.append((call, judgement))
        return judged

    def answer(self) -> WhatIf:
        """Return the answer so far."""
        if not self._judged and (self._unjudged or not self._invalid):
            raise NoRecordedCallsError(reason=self._why_none())
        seen = self._replacement.layers_seen
        if self._layer not in (EXPLICIT, BASE, *seen):
            known = ", ".join(repr(name) for name in dict.fromkeys((BASE, *seen, EXPLICIT)))
            raise InvalidOptionError(
                option="layer", reason=f"no recorded call has a layer {self._layer!r}; there are {known}"
            )
        return WhatIf(
            flips=tuple(self._flips),
            runs=self._runs,
            judged=self._judged,
            after_flip=self._after_flip,
            invalid=self._invalid,
            unjudged=tuple(self._unjudged),
            incomplete=tuple(self._incomplete),
        )

    def _why_none(self) -> str:
        if self._unjudged:
            return f"none of {len(self._unjudged)} calls can be judged: {self._unjudged[0].reason}"
        if self._incomplete:
            first, count = self._incomplete[0], len(self._incomplete)
            return f"{count} traces are not recorded completely, the first: {first.missing[0]}"
        return "no run in them has called a tool" if self._runs else "there is no recorded run"


@attrs.frozen(eq=False)
class _Order:
    """Which calls follow the first flip of their run, or an outer one."""

    judged: Mapping[str, Sequence[tuple[ToolCallRecord, Judgment]]]
    above: Callers
    _first: dict[str, int | None] = attrs.field(factory=dict, init=False)

    def follows_flip(self, run: RecordedRun, place: int) -> bool:
        first = self._first_flip(run)
        return first is not None and first < place

    def _first_flip(self, run: RecordedRun) -> int | None:
        """Return -1 if the run itself follows a flip."""
        if run.id not in self._first:
            self._first[run.id] = None  # runs around each other, in a damaged record, end here
            flips = (place for place, (_, found) in enumerate(self.judged[run.id]) if found.is_flip)
            self._first[run.id] = -1 if self._began_after_flip(run) else next(flips, None)
        return self._first[run.id]

    def _began_after_flip(self, run: RecordedRun) -> bool:
        caller = self.above.caller_of(run)
        if caller is None:
            return False
        call, around = caller
        first = self._first_flip(around)
        if first is None or first < 0:
            return first is not None
        flipped = self.judged[around.id][first][0]
        return flipped is call or flipped.started_at <= call.started_at


def _flip(trace_id: str, run_id: str, call: ToolCallRecord, found: Judgment, *, is_first: bool) -> Flip:
    return Flip(
        trace_id=trace_id,
        run_id=run_id,
        call_id=call.call_id,
        agent=call.agent,
        tool=call.tool.name,
        arguments=call.arguments,
        started_at=call.started_at,
        before=found.before,
        after=found.after,
        is_first=is_first,
    )
