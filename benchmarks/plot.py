"""A figure of costs against a count, both logarithmic. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

# A light ground of its own: the same picture stands in light and in dark pages.
_GROUND = "#fbfbf8"
_FAINT = "#d9d9d4"
INK = "#26262b"


@contextmanager
def cost_plot(
    path: Path, ticks: Sequence[int], *, title: str, x: str, y: str, caption: str
) -> Iterator[Axes]:
    """Yield axes to draw milliseconds on; write them to the PNG file at ``path`` at the end.

    Args:
        path: Where to write.
        ticks: The counts to mark on the x axis.
        title: What stands above.
        x: What is counted.
        y: What is measured.
        caption: What stands below in small letters: of what, on which machine.
    """
    with mpl.rc_context({"font.size": 11, "text.color": INK, "axes.labelcolor": INK}):
        figure = Figure(figsize=(9.0, 5.4), dpi=140, facecolor=_GROUND, layout="constrained")
        axes = figure.add_subplot(facecolor=_GROUND)
        axes.set_xscale("log")
        axes.set_yscale("log")
        yield axes
        axes.set_xticks(ticks)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.set_xlabel(x)
        axes.set_ylabel(f"{y} (log scale)")
        axes.set_title(title, color=INK, loc="left")
        axes.grid(color=_FAINT)
        axes.tick_params(colors=INK)
        for spine in axes.spines.values():
            spine.set_color(_FAINT)
        axes.legend(frameon=False, fontsize=9)
        figure.supxlabel(caption, fontsize=8, color=INK, x=0.01, ha="left")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, facecolor=_GROUND)
