"""One measured property of a judge, with its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kantan_agents.lab.evaluation.statistics import PositionBias, Rate, Trend

_SIGNIFICANT: Final = 0.05
_CANNOT_FIRE: Final = "too few independent results differ for any trend to be more than chance"


@attrs.frozen
class Measure:
    """One measured property of a judge.

    Attributes:
        name: The property, such as ``"true positive rate"``.
        value: A rate from 0 to 1, or a bias from -1 to 1, where 0 means no bias; None if unknown.
        low: Lower bound of the 95 % interval of a rate.
        high: Upper bound.
        p: The p of the hypothesis that there is no bias.
        count: Number of measured results, or of pairs of outputs.
        text: Its meaning, in a few words.
        reason: Why it is unknown.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    count: int
    text: str
    reason: str | None = None

    @classmethod
    def unknown(cls, name: str, count: int, reason: str) -> Measure:
        """Return an unknown measure."""
        return cls(name, None, None, None, None, count, f"{name}: cannot tell, {reason}", reason)

    @classmethod
    def of_rate(cls, name: str, rate: Rate, meaning: str) -> Measure:
        """Return a rate of a class that has cases.

        Args:
            name: The property.
            rate: The rate.
            meaning: Its meaning, a format string for the two counts.
        """
        low, high = rate.interval or (None, None)
        figures = f"{rate.value or 0.0:.2g} ({', '.join(bounds(low, high))})"
        results = counted(rate.cases, "result")
        if rate.units < rate.cases:  # repeats, variants, or cases of a conversation
            results += f" of {counted(rate.units, 'independent case')}"
        meant = meaning.format(agreed=f"{rate.agreed:,}", results=results)
        return cls(name, rate.value, low, high, None, rate.cases, f"{name}: {figures}: {meant}")

    @classmethod
    def of_trend(cls, name: str, trend: Trend, means: Mapping[str, str]) -> Measure:
        """Return whether the error of a judge follows a trend.

        Args:
            name: The property.
            trend: The trend.
            means: The meaning of a rise, a fall and neither, as ``up``, ``down`` and ``none``; and as
                ``unknown`` why it is unknown.
        """
        if trend.correlation is None:
            return cls.unknown(name, trend.cases, means["unknown"])
        if trend.least_p > _SIGNIFICANT:
            return cls.unknown(name, trend.cases, _CANNOT_FIRE)
        meant = means["none" if trend.p > _SIGNIFICANT else "up" if trend.correlation > 0 else "down"]
        figures = f"correlation {trend.correlation:.2g}, p {trend.p:.2g}, {counted(trend.cases, 'result')}"
        return cls(name, trend.correlation, None, None, trend.p, trend.cases, f"{name}: {meant} ({figures})")

    @classmethod
    def of_position(cls, name: str, bias: PositionBias) -> Measure:
        """Return whether a pairwise judge prefers a position."""
        pairs = bias.first + bias.second + bias.consistent
        place = "first" if bias.bias > 0 else "second"
        meant = (
            f"it prefers what it sees {place}"
            if bias.p <= _SIGNIFICANT
            else "no sign that a position is preferred"
        )
        leanings = f"{bias.first:,} times the first, {bias.second:,} times the second"
        figures = f"{leanings}, p {bias.p:.2g}, {counted(pairs, 'pair')}"
        return cls(name, bias.bias, None, None, bias.p, pairs, f"{name}: {meant} ({figures})")

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return attrs.asdict(self)


def counted(count: int, thing: str) -> str:
    """Return a count with its noun: ``1 case``, ``12 cases``."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def bounds(low: float | None, high: float | None) -> list[str]:
    """Return an interval as a list of one string; empty if it is unknown."""
    return [] if low is None or high is None else [f"{low:.2g} to {high:.2g}"]
