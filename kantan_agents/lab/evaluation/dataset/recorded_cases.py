"""Turns recorded runs into cases."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Final

import attrs

from kantan_agents.core.usage import tokens_of
from kantan_agents.errors import EmptyDatasetError, InvalidCaseError, InvalidOptionError, KantanAgentsError
from kantan_agents.lab.evaluation.dataset.case import NESTED, Case
from kantan_agents.lab.evaluation.judge_keys import JUDGE_KEY
from kantan_agents.lab.replay.cohort import Skipped
from kantan_agents.lab.replay.recording import Recording, earlier_items, values_before
from kantan_agents.support.arguments import checked_int
from kantan_agents.tool_rules import EXPLICIT
from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.capture.canonical import copied
from kantan_agents.traces.metadata import JUDGE_PROMPT_ID, RUN_SPAN
from kantan_agents.traces.store import StoredTrace, TraceStore
from kantan_agents.traces.store.experiment_keys import EXPERIMENT_KEY
from kantan_agents.traces.store.filters import TraceFilters
from kantan_agents.traces.store.verdicts import JUDGED

_LOW_SCORE: Final = 0.5
"""As for ``TraceStore.failed``."""
_NOT_CASES: Final = {
    EXPERIMENT_KEY: "was made by an experiment",
    JUDGE_PROMPT_ID: "is that of a judge",
    JUDGED: "is that of a judge",
    JUDGE_KEY: "is that of a judge",
}
"""Metadata keys of runs that do not become cases."""


_EARLIER_TURNS: Final = ("conversation_id", "previous_response_id")
"""Options with which the input is only the latest turn of a conversation."""


@attrs.frozen
class WantedCases:
    """Selects the recorded runs that become cases; see ``Dataset.from_traces``."""

    filters: TraceFilters
    failed: bool | None
    last: timedelta | None
    limit: int | None
    sample: int | None
    seed: int

    @property
    def left_out(self) -> Sequence[str]:
        """Metadata keys of omitted runs."""
        return [key for key in _NOT_CASES if key not in (self.filters.get("metadata") or {})]

    def __attrs_post_init__(self) -> None:
        if self.failed not in (True, False, None):
            raise InvalidOptionError(
                option="failed", reason=f"must be True, False or None, not {self.failed!r}"
            )
        if self.last is not None and self.filters.get("started_from") is not None:
            raise InvalidOptionError(option="last", reason="cannot be combined with started_from")
        for option, value in (("limit", self.limit), ("sample", self.sample)):
            if value is not None:
                checked_int(option, value, 1)


def recorded_cases(store: TraceStore, wanted: WantedCases) -> tuple[list[Case], list[Skipped]]:
    """Return a case for each outermost run that matches, and the skipped traces."""
    verdicts = _Verdicts(store, wanted.filters)
    found = _matching(store, wanted, verdicts)
    if not found:
        reason = f"no trace in {store.path} passes these filters; try them in `kantan-agents traces list`"
        raise EmptyDatasetError(reason=reason)
    cases: dict[str, list[Case]] = {}
    skipped: list[Skipped] = []
    left = wanted.sample
    for trace_id in _drawn(found, wanted):
        if left is not None and left <= 0:
            break
        of_trace = []
        for one in _read(store, trace_id, wanted.left_out, verdicts):
            if isinstance(one, Skipped):
                skipped.append(one)
            else:
                of_trace.append(one)
        cases[trace_id] = of_trace[:left]
        left = None if left is None else left - len(cases[trace_id])
    chosen = [case for trace_id in found for case in cases.get(trace_id, ())]
    if not chosen:
        first = f"; the trace {skipped[0].trace_id}: {skipped[0].reason}" if skipped else ""
        reason = f"none of the {len(found)} traces that match has a run that can be a case{first}"
        raise EmptyDatasetError(reason=reason)
    return chosen, skipped


def cases_of_trace(store: TraceStore, trace_id: str) -> list[Case]:
    """Return a case for each outermost run, even of a judge."""
    found = store.trace(trace_id).trace_id
    read = list(_read(store, found, (), _Verdicts(store, {})))
    cases = [one for one in read if isinstance(one, Case)]
    if not cases:
        reasons = "; ".join(one.reason for one in read if isinstance(one, Skipped))
        raise EmptyDatasetError(reason=reasons or f"the trace {found} has no run of an agent")
    return cases


def _drawn(found: Sequence[str], wanted: WantedCases) -> Sequence[str]:
    """Return the traces at random, if only some are needed."""
    if wanted.sample is None:
        return found
    drawn = sorted(found)
    random.Random(wanted.seed).shuffle(drawn)  # noqa: S311 - no secret
    return drawn


class _Verdicts:
    """The verdicts of judges, by the trace of the judged answer."""

    def __init__(self, store: TraceStore, filters: TraceFilters) -> None:
        self._store = store
        self._given = filters.get("rubric_below")
        self._known: dict[str, Mapping[str, Any]] | None = None

    @property
    def is_filter(self) -> bool:
        return self._given is not None

    @property
    def low(self) -> Mapping[str, Mapping[str, Any]]:
        if self._known is None:
            self._known = self._read()
        return self._known

    def of(self, trace_id: str) -> Mapping[str, Any] | None:
        return None if self._known is None else self._known.get(trace_id)

    def _read(self) -> dict[str, Mapping[str, Any]]:
        threshold = _LOW_SCORE if self._given is None else self._given
        lowest: dict[str, Mapping[str, Any]] = {}
        judged: dict[str, str] = {}
        for span in self._store.failed(threshold):
            if span.trace_id not in judged:
                judged[span.trace_id] = self._store.judged(span.trace_id)
            known = lowest.setdefault(judged[span.trace_id], span.rubric)
            if span.rubric["score"] < known["score"]:
                lowest[judged[span.trace_id]] = span.rubric
        return lowest


def _matching(store: TraceStore, wanted: WantedCases, verdicts: _Verdicts) -> list[str]:
    filters: TraceFilters = {**wanted.filters, "rubric_below": None}
    if wanted.last is not None:
        filters["started_from"] = datetime.now(timezone.utc) - wanted.last
    filters["metadata"] = {**dict.fromkeys(wanted.left_out), **(filters.get("metadata") or {})}
    # A verdict is usually in the trace of its judge, so SQL cannot find answers with a low score.
    needs_verdicts = verdicts.is_filter or wanted.failed is not None
    found = [
        trace.trace_id for trace in store.traces(limit=None if needs_verdicts else wanted.limit, **filters)
    ]
    if wanted.failed is not None:
        failing: TraceFilters = {**filters, "has_failed": True}
        bad = {*verdicts.low, *(trace.trace_id for trace in store.traces(limit=None, **failing))}
        found = [trace_id for trace_id in found if (trace_id in bad) == wanted.failed]
    elif verdicts.is_filter:
        found = [trace_id for trace_id in found if trace_id in verdicts.low]
    return found[: wanted.limit]


def _read(
    store: TraceStore, trace_id: str, left_out: Sequence[str], verdicts: _Verdicts
) -> Iterator[Case | Skipped]:
    try:
        trace = store.trace(trace_id)
        if trace.missing:
            yield Skipped(trace_id, "its record is not complete: " + "; ".join(trace.missing))
            return
        ids = {run.id for run in trace.runs}
        roots = [run for run in trace.runs if run.parent_run not in ids]
        metadata = _metadata_of_runs(trace)
        for root in roots:
            reason = _obstacle(root, metadata.get(root.id, {}), left_out)
            if reason is not None:
                yield Skipped(trace_id, reason)
                continue
            recording = Recording.of(trace, run=root.id)
            try:
                yield _case(trace, recording, verdicts.of(trace_id))
            except InvalidCaseError as error:
                yield Skipped(trace_id, error.reason)
    except KantanAgentsError as error:
        yield Skipped(trace_id, str(error))


def _metadata_of_runs(trace: StoredTrace) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    given = [(span.raw or {}).get("span_data") or {} for span in trace.spans if span.name == RUN_SPAN]
    for metadata in [trace.summary.metadata, *(data.get("data") or {} for data in given)]:
        run_id = metadata.get("agent_run_id")
        if isinstance(run_id, str):
            found.setdefault(run_id, metadata)
    return found


def _obstacle(root: RunRecord, metadata: Mapping[str, Any], left_out: Sequence[str]) -> str | None:
    """Return why a run cannot be a case."""
    for key in left_out:
        if key in metadata:
            return f"the run {root.id} {_NOT_CASES[key]}"
    if root.input is None:
        return f"the run {root.id} was resumed from a stored state, so its input is in another run"
    held = [name for name in _EARLIER_TURNS if root.options.get(name)]
    if held:
        return f"the run {root.id} used {held[0]}, so only the provider has the turns before it"
    if root.outcome in ("cancelled", "stopped"):
        return f"the run {root.id} was {root.outcome} before it had an answer"
    return None


def _case(
    trace: StoredTrace,
    recording: Recording,
    verdict: Mapping[str, Any] | None,
) -> Case:
    root = recording.root
    given, earlier = input_of(root)
    prompt = root.agents[0].prompt if root.agents else None
    used = [tokens_of(call.answer) for run in recording.runs for call in run.model_calls]
    metadata: dict[str, Any] = {
        "trace_id": trace.trace_id,
        "agent_run_id": root.id,
        "agent": root.agent,
        "prompt": None if prompt is None else prompt.name,
        "version": None if prompt is None else prompt.version,
        "input_tokens": sum(read for read, _ in used),
        "output_tokens": sum(written for _, written in used),
        "error": None if root.error is None else f"{root.error.type}: {root.error.message}",
        "score": None if verdict is None else verdict.get("score"),
        "sent": None if root.given is None or root.given == root.input else root.input,
        NESTED: root.is_nested or None,
    }
    return Case(
        given,
        id=root.id,
        context=_context(root),
        expected=root.output,
        metadata={key: value for key, value in metadata.items() if value is not None},
        conversation=trace.summary.group_id or None,
        earlier=earlier,
    )


def input_of(root: RunRecord) -> tuple[str | list[Mapping[str, Any]], list[Any]]:
    """Return the original input of a run, or else the whole conversation; and its session items."""
    given, earlier = root.begins_with, earlier_items(root)
    if root.given is None and root.has_session and root.model_calls:
        given, earlier = root.model_calls[0].request.input, []
    return given if isinstance(given, str) else [*(given or ())], earlier


def _context(root: RunRecord) -> dict[str, Any]:
    """Return the values that the template has read, and the rules, which deny the same tools again."""
    context = values_before(root)
    for name, rules in root.rules.layers:
        if name == EXPLICIT:
            context["tool_rules"] = copied(rules)
    return context
