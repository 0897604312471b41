"""Common parts of charts: frame, labels, marks and axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from kantan_agents.lab.evaluation.report.markup import text

WIDTH: Final = 940
LABEL: Final = 200
_LONGEST: Final = 26
_INTERVALS: Final = 5
"""The approximate number of intervals between ticks."""
_MARGIN: Final = 0.04


def drawing(title: str, description: str, height: float, content: str) -> str:
    """Return a chart with a name and a description for screen readers."""
    return (
        f'<div class="wide" role="region" aria-label="{text(title)}" tabindex="0">'
        f'<svg role="img" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}">'
        f"<title>{text(title)}</title><desc>{text(description)}</desc>{content}</svg></div>"
    )


def label(value: str, y: float, note: str = "") -> str:
    """Return the label of a row, with the whole string as its title."""
    shown = value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
    below = f'<tspan class="tick" x="0" dy="14">{text(note)}</tspan>' if note else ""
    base = y - 3 if note else y + 4
    return f'<text class="label" x="0" y="{base:.1f}"><title>{text(value)}</title>{text(shown)}{below}</text>'


def mark(verdict: str, x: float, y: float, size: float = 6) -> str:
    """Return the sign of a verdict: a triangle or a circle."""
    style = verdict.replace(" ", "-")
    if verdict == "cannot tell":
        return f'<circle class="mark {style}" cx="{x:.1f}" cy="{y:.1f}" r="{size - 1:.1f}"/>'
    turn = -1 if verdict == "better" else 1
    base, tip = y - turn * size, y + turn * size
    points = f"{x - size:.1f},{base:.1f} {x + size:.1f},{base:.1f} {x:.1f},{tip:.1f}"
    return f'<polygon class="mark {style}" points="{points}"/>'


@attrs.frozen
class Axis:
    """A horizontal axis from ``low`` to ``high``, at the positions ``left`` to ``right``."""

    low: float
    high: float
    left: float
    right: float

    @classmethod
    def over(cls, values: Iterable[float], left: float, right: float) -> Axis:
        """Return an axis for these values, with a small margin."""
        listed = list(values)
        low, high = min(listed), max(listed)
        margin = (high - low) * _MARGIN or abs(high) * _MARGIN or 1.0
        return cls(low - margin, high + margin, left, right)

    def at(self, value: float) -> float:
        """Return the position of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.left + share * (self.right - self.left)

    @property
    def ticks(self) -> list[float]:
        """Round values on the axis."""
        step = _round_step((self.high - self.low) / _INTERVALS)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [number * step for number in range(first, last + 1)]

    def drawn(self, top: float, bottom: float, label: Callable[[float], str]) -> str:
        """Return the ticks as SVG: faint lines with labels below."""
        return "".join(
            f'<line class="grid" x1="{self.at(tick):.1f}" y1="{top:.1f}" x2="{self.at(tick):.1f}" '
            f'y2="{bottom:.1f}"/><text class="tick" x="{self.at(tick):.1f}" y="{bottom + 16:.1f}" '
            f'text-anchor="middle">{text(label(tick))}</text>'
            for tick in self.ticks
        )


def _round_step(rough: float) -> float:
    """Round up to 1, 2 or 5, times a power of ten."""
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next((power * one for one in (1, 2, 5) if power * one >= rough), power * 10)
