"""Draws each growth curve in its own log-log panel. Needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from benchmarks.growth.results import Growth
from benchmarks.plot import FAINT, GROUND, INK

_OURS, _OTHER = "#2a6fbb", "#c2452d"
_COLUMNS = 4
_PANEL = (3.7, 3.1)
_LEAST_SPAN = 30
"""Minimum ratio of the highest to the lowest value of a panel, so that noise does not look like growth."""


def draw(growths: Sequence[Growth], path: Path, machine: str) -> None:
    """Draw all curves into the PNG file at ``path``, with ``machine`` in the caption."""
    columns = min(_COLUMNS, len(growths))
    rows = math.ceil(len(growths) / columns)
    with mpl.rc_context({"font.size": 9, "text.color": INK, "axes.labelcolor": INK}):
        size = (_PANEL[0] * columns, _PANEL[1] * rows + 0.6)
        figure = Figure(figsize=size, dpi=140, facecolor=GROUND, layout="constrained")
        for place, growth in enumerate(growths, start=1):
            _panel(figure.add_subplot(rows, columns, place), growth)
        figure.suptitle("What it costs as its surroundings grow", x=0.01, ha="left", fontsize=13)
        caption = (
            f"Both axes are logarithmic. After a name: cost at the largest size over the smallest.\n{machine}"
        )
        figure.supxlabel(caption, fontsize=8, color=INK, x=0.01, ha="left")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, facecolor=GROUND)


def _panel(axes: Axes, growth: Growth) -> None:
    curve, sizes = growth.curve, [point.size for point in growth.points]
    axes.set_facecolor(GROUND)
    ours = [point.ours * 1e6 for point in growth.points]
    other = [point.other * 1e6 for point in growth.points if point.other is not None]
    if other:
        axes.plot(sizes, other, "o-", color=_OTHER, lw=1.6, ms=4, label=_label(curve.other, growth.other))
    axes.plot(sizes, ours, "s-", color=_OURS, lw=1.6, ms=4, label=_label("kantan_agents", growth.ours))
    if sizes[0] == 0:
        # Linear up to the first size, so that the axis includes 0.
        axes.set_xscale("symlog", linthresh=sizes[1], linscale=0.5)
    else:
        axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = min(ours + other), max(ours + other)
    middle = math.sqrt(low * high)
    spread = max(math.sqrt(_LEAST_SPAN), 2 * math.sqrt(high / low))
    axes.set_ylim(middle / spread, middle * spread * 2)
    axes.set_xticks(sizes, [_count(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.set_xlabel(curve.x)
    axes.set_ylabel(f"us a {curve.per}")
    axes.set_title(curve.title, fontsize=9, loc="left", color=INK)
    axes.grid(color=FAINT)
    axes.tick_params(colors=INK, which="both")
    for spine in axes.spines.values():
        spine.set_color(FAINT)
    axes.legend(frameon=False, fontsize=7.5, loc="upper left")


def _label(name: str | None, growth: float | None) -> str:
    return f"{name}, x {growth:,.3g}"


def _count(size: int) -> str:
    """Return a short form of a count for an axis."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if size >= unit:
            return f"{size / unit:g}{letter}"
    return str(size)
