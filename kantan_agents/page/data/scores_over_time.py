"""Scores of prompts over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from statistics import fmean
from typing import Any, Final, NamedTuple

from kantan_agents.lab.evaluation.statistics import Interval, is_binary, proportion
from kantan_agents.lab.evaluation.statistics.distributions import t_quantile
from kantan_agents.lab.evaluation.statistics.independent_units import units_of
from kantan_agents.traces.store import TraceStore
from kantan_agents.traces.store.connection import reading
from kantan_agents.traces.store.verdicts import Answers

_UNITS: Final = (timedelta(minutes=1), timedelta(hours=1), timedelta(days=1), timedelta(weeks=1))
_MOST_PERIODS: Final = 60
_MOST_SCORES: Final = 5_000
_MOST_VERSIONS: Final = 8
_FEWEST: Final = 5
"""Conversations; an interval from fewer would be misleading."""
_LEVEL: Final = 0.95
_START: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Scored(NamedTuple):
    """The scores of one conversation are not independent."""

    time: datetime
    value: float
    conversation: str


def scores_over_time(store: TraceStore, name: str) -> dict[str, Any]:
    """Return judges' scores."""
    known = [stats.prompt_version for stats in store.prompts(name) if stats.scores][-_MOST_VERSIONS:]
    # The store cannot select scores without a version, so they are omitted next to scores of versions.
    versions = [one for one in known if one is not None] or known
    scores = {version: _scores(store, name, version) for version in versions}
    times = [one.time for found in scores.values() for one in found]
    if not times:
        return {"seconds": None, "versions": []}
    unit = _unit(max(times) - min(times))
    return {
        "seconds": unit.total_seconds(),
        "versions": [
            {"version": version, "periods": _periods(found, unit)}
            for version, found in scores.items()
            if found
        ],
    }


def _scores(store: TraceStore, name: str, version: str | None) -> list[Scored]:
    found = store.failed(math.inf, prompt=name, version=version, limit=_MOST_SCORES)
    with reading(store.path, with_views=False) as connection:
        unit_of = Answers(connection).conversation_of
        return [
            Scored(
                span.started_at.astimezone(timezone.utc),
                float(span.rubric["score"]),
                unit_of(span.trace_id, span.span_id),
            )
            for span in found
            if span.started_at is not None
        ]


def _unit(span: timedelta) -> timedelta:
    """The shortest period that does not give too many."""
    return next((unit for unit in _UNITS if span <= unit * _MOST_PERIODS), span / _MOST_PERIODS)


def _periods(scores: Iterable[Scored], unit: timedelta) -> list[dict[str, Any]]:
    found: dict[int, list[Scored]] = {}
    for one in scores:
        found.setdefault((one.time - _START) // unit, []).append(one)
    return [
        {"start": (_START + number * unit).isoformat(), **_mean(values)}
        for number, values in sorted(found.items())
    ]


def _mean(scores: Sequence[Scored]) -> dict[str, Any]:
    """The interval stays inside 0 and 1 if all scores do."""
    values = [one.value for one in scores]
    interval = _interval(values, [one.conversation for one in scores])
    low, high = (None, None) if interval is None else interval
    return {"scores": len(values), "mean": fmean(values), "low": low, "high": high}


def _interval(values: Sequence[float], units: Sequence[str]) -> Interval | None:
    """Student's interval, for binary scores the exact one; None for too few conversations."""
    if len(set(units)) < _FEWEST:
        return None
    if is_binary(values):
        return proportion(values, units, level=_LEVEL).interval
    found = units_of(values, units)
    half = t_quantile(0.5 + _LEVEL / 2, found.count - 1) * found.standard_error
    low, high = fmean(values) - half, fmean(values) + half
    if all(0 <= value <= 1 for value in values):
        low, high = max(0.0, low), min(1.0, high)
    return Interval(low, high) if half else None
