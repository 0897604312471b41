"""``Cohort``: the recorded runs that are replayed with a change."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Final

import attrs
from typing_extensions import Self, Unpack

from kantan_agents.errors import EmptyCohortError, InvalidOptionError, KantanAgentsError, ReplayBudgetError
from kantan_agents.lab.experiment.prices import Prices, UsageMetrics
from kantan_agents.lab.replay.provider_side import held_by_provider, runs_here, why_not_repeated
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.support.arguments import checked_int
from kantan_agents.support.ledger import Amounts
from kantan_agents.traces.capture import ModelCallRecord, RunRecord
from kantan_agents.traces.store import TraceStore
from kantan_agents.traces.store.experiment_keys import EXPERIMENT_KEY
from kantan_agents.traces.store.filters import TraceFilters

_HELD_LATER: Final = "auto_previous_response_id"


@attrs.frozen
class Skipped:
    """A trace that cannot be replayed, with the reason.

    Attributes:
        trace_id: Id of the trace.
        reason: Why it cannot be replayed.
    """

    trace_id: str
    reason: str


@attrs.frozen
class Cohort:
    """Recorded runs of a trace database to replay. Create it with ``select`` or ``of``.

    Attributes:
        store: The database.
        trace_ids: Ids of the traces, latest first.
    """

    store: TraceStore
    trace_ids: Sequence[str]

    @classmethod
    def select(
        cls,
        store: TraceStore,
        *,
        last: timedelta | None = None,
        sample: int | None = None,
        seed: int = 0,
        limit: int | None = None,
        **filters: Unpack[TraceFilters],
    ) -> Self:
        """Return the cohort of all traces that match.

        Runs of experiments are omitted unless a ``metadata`` filter selects them.

        Args:
            store: The database.
            last: Only traces of this period until now.
            sample: How many of the matching traces to choose at random; None for all.
            seed: The same seed chooses the same traces from the same matches.
            limit: At most this many of the latest traces match; None for all.
            **filters: As for ``store.traces``: ``agent``, ``prompt``, ``version``, ``tool``, ...

        Raises:
            InvalidOptionError: E75, an argument is invalid.
            EmptyCohortError: E97, no trace matches.
            TraceDatabaseError: E60, the file cannot be read.
        """
        if last is not None:
            if filters.get("started_from") is not None:
                raise InvalidOptionError(option="last", reason="cannot be combined with started_from")
            filters["started_from"] = datetime.now(timezone.utc) - last
        metadata = dict(filters.get("metadata") or {})
        filters["metadata"] = {EXPERIMENT_KEY: None, **metadata}
        found = [trace.trace_id for trace in store.traces(limit=limit, **filters)]
        if not found:
            reason = f"no trace in {store.path} passes these filters; try them in `kantan-agents traces list`"
            raise EmptyCohortError(reason=reason)
        if sample is not None:
            many = min(checked_int("sample", sample, 1), len(found))
            chosen = set(random.Random(seed).sample(sorted(found), many))  # noqa: S311 - no secret
            found = [trace_id for trace_id in found if trace_id in chosen]
        return cls(store, tuple(found))

    @classmethod
    def of(cls, store: TraceStore, trace_ids: Iterable[str]) -> Self:
        """Return the cohort of the given traces.

        Args:
            store: The database.
            trace_ids: Ids as ``store.trace`` takes them.

        Raises:
            EmptyCohortError: E97, no id is given.
            TraceNotFoundError: E61, a trace does not exist.
            TraceDatabaseError: E60, the file cannot be read.
        """
        given = [trace_ids] if isinstance(trace_ids, str) else list(trace_ids)
        if not given:
            raise EmptyCohortError(reason="no trace id is given")
        full = [store.trace(trace_id).summary.trace_id for trace_id in given]
        return cls(store, tuple(dict.fromkeys(full)))

    def read(self, trace_id: str) -> Sequence[Recording | Skipped]:
        """Return the recordings of the outermost runs in a trace, or why it cannot be replayed."""
        try:
            trace = self.store.trace(trace_id)
            if trace.missing:
                return [Skipped(trace_id, "its record is not complete: " + "; ".join(trace.missing))]
            ids = {run.id for run in trace.runs}
            outermost = [run.id for run in trace.runs if run.parent_run not in ids]
            return [Recording.of(trace, run=run_id) for run_id in outermost]
        except KantanAgentsError as error:
            return [Skipped(trace_id, str(error))]

    def recordings(self) -> Iterator[Recording]:
        """Yield the recordings one by one, without traces that were not recorded completely."""
        for trace_id in self.trace_ids:
            yield from (one for one in self.read(trace_id) if isinstance(one, Recording))

    def __len__(self) -> int:
        return len(self.trace_ids)


def obstacle(recording: Recording, live: Iterable[str]) -> str | None:
    """Return why a run cannot be replayed with these ``live`` tools; None if it can."""
    root = recording.root
    if root.state is not None:
        return "it was resumed from a stored state, so its beginning is in another run"
    if _is_paused(root):
        return "it waits for an approval, and what a person would decide is not recorded in it"
    for run in recording.runs:
        if run.outcome in ("cancelled", "stopped"):
            return f"the run of {run.agent!r} was {run.outcome}, at a moment that cannot be repeated"
        held = [_HELD_LATER] if run.options.get(_HELD_LATER) else held_by_provider(run.options)
        if held:
            return why_not_repeated(held[0])
        for call in run.model_calls:
            reason = _obstacle_of_call(call, frozenset(live))
            if reason is not None:
                return reason
    return None


def recorded_figures(
    runs: Iterable[RunRecord], prices: Prices, models: Mapping[str, str] | None = None
) -> UsageMetrics:
    """Return the usage of recorded runs, at the prices of ``models`` by agent if given."""
    total = UsageMetrics(cost=prices.nothing)
    for run in runs:
        for call in run.model_calls:
            model = (models or {}).get(call.agent, call.model)
            total += prices.figures(model, call.answer, call.seconds)
    return total


def estimated_use(recording: Recording, prices: Prices, models: Mapping[str, str] | None = None) -> Amounts:
    """Return the expected ``tokens`` and ``cost``; None where unknown."""
    return expected_amounts(recorded_figures(recording.runs, prices, models))


def expected_amounts(used: UsageMetrics) -> Amounts:
    """Return the expected ``tokens`` and ``cost`` of a similar run."""
    return {"tokens": used.tokens or None, "cost": used.cost if used.tokens else None}


def check_estimates(limits: Mapping[str, float], estimates: Iterable[Amounts]) -> None:
    """Raise E98 if estimates exceed a limit together, or one is unknown."""
    listed = list(estimates)
    for name, most in limits.items():
        values = [one[name] for one in listed]
        if None in values:
            reason = "the recorded runs do not say what they used, or a model has no price"
            raise ReplayBudgetError(reason=f"it cannot be estimated, as {reason}")
        total = sum(value or 0 for value in values)
        if total > most:
            what = "of cost" if name == "cost" else name
            reason = (
                f"about {total:,.6g} {what} for {len(listed)} runs, and the limit is {most:,.6g}; "
                "take a smaller sample, or raise the limit"
            )
            raise ReplayBudgetError(reason=reason)


def _obstacle_of_call(call: ModelCallRecord, live: frozenset[str]) -> str | None:
    held = held_by_provider(call.request.options)
    if held:
        return why_not_repeated(held[0])
    for tool in call.request.tools:
        if not runs_here(tool) and tool.name not in live:
            return (
                f"the tool {tool.name!r} ({tool.kind}) would run at the provider or start something; "
                "name it in live if it may"
            )
    if call.error is not None and call.error.type == "CancelledError" and not call.is_superseded:
        return f"a model call of {call.agent!r} was cancelled, at a moment that cannot be repeated"
    return None


def _is_paused(run: RunRecord) -> bool:
    if run.error is not None or run.output is not None or not run.model_calls:
        return False
    last: Any = [call for call in run.model_calls if not (call.is_internal or call.is_superseded)][-1:]
    answer = last[0].answer if last else None
    if answer is None:
        return False
    made = {call.call_id for call in run.tool_calls}
    asked = [item.get("call_id") for item in answer.output if str(item.get("type", "")).endswith("_call")]
    return any(call_id is not None and call_id not in made for call_id in asked)
