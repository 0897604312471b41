"""The results of growth curves, as JSON and as Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import attrs

from benchmarks.growth.curve import Curve


@attrs.frozen
class Point:
    """Seconds per run, call, file or search at one size; ``other`` is None without another side."""

    size: int
    ours: float
    other: float | None = None

    @property
    def ratio(self) -> float | None:
        """The cost of kantan_agents as a ratio to the other side."""
        return None if self.other is None else self.ours / self.other


@attrs.frozen
class Growth:
    """One measured curve.

    Attributes:
        curve: The curve.
        points: Its points, from the smallest size to the largest.
        ours: Ratio of the cost at the largest size to that at the smallest, for kantan_agents.
    """

    curve: Curve
    points: tuple[Point, ...]
    ours: float

    @property
    def other(self) -> float | None:
        """The same ratio for the other side, if there is one."""
        first, last = self.points[0].ratio, self.points[-1].ratio
        # All three come from sides that took turns, so a drift of the machine affects none of them.
        return None if first is None or last is None else self.ours * first / last


def to_json(growths: Sequence[Growth], machine: str) -> str:
    """Return the results as JSON text, with seconds per unit such as one run."""
    curves = [_as_dict(growth) for growth in growths]
    return json.dumps({"machine": machine, "curves": curves}, indent=2) + "\n"


def _as_dict(growth: Growth) -> dict[str, Any]:
    curve = growth.curve
    return {
        "name": curve.name,
        "title": curve.title,
        "x": curve.x,
        "per": curve.per,
        "other": curve.other,
        "seconds": [attrs.asdict(point) for point in growth.points],
        "growth": {"ours": growth.ours, "other": growth.other},
    }


def to_markdown(growths: Sequence[Growth], machine: str) -> str:
    """Return a table for each curve; its last row is the growth from the smallest to the largest size."""
    tables = [f"## {growth.curve.title}\n\n{to_table(growth)}" for growth in growths]
    return "\n\n".join(["# Growth", f"{machine}.", *tables]) + "\n"


def to_table(growth: Growth) -> str:
    """Return the Markdown table of a curve."""
    curve = growth.curve
    headings = [curve.x, f"kantan_agents, us a {curve.per}"]
    if curve.other is not None:
        headings += [f"{curve.other}, us a {curve.per}", "ratio"]
    rows = [headings, ["---:" for _ in headings]]
    rows += [[f"{point.size:,}", *_costs(point)] for point in growth.points]
    rows.append(["growth", *_shown(growth.ours, growth.other, "{:,.2f}")])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _costs(point: Point) -> list[str]:
    return _shown(point.ours * 1e6, None if point.other is None else point.other * 1e6, "{:,.1f}")


def _shown(ours: float, other: float | None, form: str) -> list[str]:
    if other is None:
        return [form.format(ours)]
    return [form.format(ours), form.format(other), f"{ours / other:.2f}"]
