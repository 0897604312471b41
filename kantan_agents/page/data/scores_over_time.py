"""The scores of each version of a prompt over time, with the interval in which their mean lies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from statistics import fmean, stdev
from typing import Any, Final

from kantan_agents.lab.evaluation.statistics.distributions import t_quantile
from kantan_agents.traces.store import TraceStore

_UNITS: Final = (timedelta(minutes=1), timedelta(hours=1), timedelta(days=1), timedelta(weeks=1))
_MOST_PERIODS: Final = 60
_MOST_SCORES: Final = 5_000
"""So many of the newest scores of a version are read."""
_MOST_VERSIONS: Final = 8
_FEWEST: Final = 5
"""With fewer scores in a period, an interval would say more than is known."""
_LEVEL: Final = 0.95
_START: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def scores_over_time(store: TraceStore, name: str) -> dict[str, Any]:
    """Return the scores of judges for each version of a prompt, by periods of equal length.

    Raises:
        TraceDatabaseError: E60, the file cannot be read.
    """
    known = [stats.prompt_version for stats in store.prompts(name) if stats.scores][-_MOST_VERSIONS:]
    # Scores of plain texts cannot be asked for by themselves; they are left out beside those of versions.
    versions = [one for one in known if one is not None] or known
    scores = {version: _scores(store, name, version) for version in versions}
    times = [time for found in scores.values() for time, _ in found]
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


def _scores(store: TraceStore, name: str, version: str | None) -> list[tuple[datetime, float]]:
    found = store.failed(math.inf, prompt=name, version=version, limit=_MOST_SCORES)
    return [
        (span.started_at.astimezone(timezone.utc), float(span.rubric["score"]))
        for span in found
        if span.started_at is not None
    ]


def _unit(span: timedelta) -> timedelta:
    """Return the shortest unit in which there are not too many periods."""
    return next((unit for unit in _UNITS if span <= unit * _MOST_PERIODS), span / _MOST_PERIODS)


def _periods(scores: Iterable[tuple[datetime, float]], unit: timedelta) -> list[dict[str, Any]]:
    found: dict[int, list[float]] = {}
    for time, score in scores:
        found.setdefault((time - _START) // unit, []).append(score)
    return [
        {"start": (_START + number * unit).isoformat(), **_mean(values)}
        for number, values in sorted(found.items())
    ]


def _mean(values: Sequence[float]) -> dict[str, Any]:
    """Return the mean with Student's interval, limited to the scores that are possible."""
    mean = fmean(values)
    if len(values) < _FEWEST:
        return {"scores": len(values), "mean": mean, "low": None, "high": None}
    half = t_quantile(0.5 + _LEVEL / 2, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    low, high = mean - half, mean + half
    if all(0 <= value <= 1 for value in values):
        low, high = max(0.0, low), min(1.0, high)
    return {"scores": len(values), "mean": mean, "low": low, "high": high}
