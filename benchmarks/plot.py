"""Frames for figures, among them a log-log plot of a cost against a count. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

# A light background, since the same picture is shown in light and in dark pages.
GROUND = "#fbfbf8"
FAINT = "#d9d9d4"
INK = "#26262b"

_SIZE = (9.0, 5.4)


@contextmanager
def framed(path: Path, size: tuple[float, float], *, title: str, caption: str) -> Iterator[Axes]:
    """Yield axes to draw on, and write the figure to the PNG file at ``path`` at the end.

    Args:
        path: The file to write.
        size: Width and height in inches.
        title: Text above the figure.
        caption: Small text below it, such as the machine.
    """
    with mpl.rc_context({"font.size": 11, "text.color": INK, "axes.labelcolor": INK}):
        figure = Figure(figsize=size, dpi=140, facecolor=GROUND, layout="constrained")
        axes = figure.add_subplot(facecolor=GROUND)
        axes.set_axisbelow(True)
        axes.grid(color=FAINT)
        yield axes
        axes.set_title(title, color=INK, loc="left")
        axes.tick_params(colors=INK)
        for spine in axes.spines.values():
            spine.set_color(FAINT)
        figure.supxlabel(caption, fontsize=8, color=INK, x=0.01, ha="left")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, facecolor=GROUND)


@contextmanager
def cost_plot(
    path: Path, ticks: Sequence[int], *, title: str, x: str, y: str, caption: str
) -> Iterator[Axes]:
    """Yield axes to draw milliseconds on, and write the figure to the PNG file at ``path`` at the end.

    Args:
        path: The file to write.
        ticks: The counts to mark on the x axis.
        title: Text above the figure.
        x: Label of the x axis.
        y: Label of the y axis.
        caption: Small text below it, such as the machine.
    """
    with framed(path, _SIZE, title=title, caption=caption) as axes:
        axes.set_xscale("log")
        axes.set_yscale("log")
        yield axes
        axes.set_xticks(ticks)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.set_xlabel(x)
        axes.set_ylabel(f"{y} (log scale)")
        axes.legend(frameon=False, fontsize=9)
