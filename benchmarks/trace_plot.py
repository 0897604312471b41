"""Draws the cost of a run against the number of spans in the file. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.trace_growth import Growth

# A light ground of its own: the same picture stands in light and in dark pages.
_GROUND = "#fbfbf8"
_INK = "#26262b"
_FAINT = "#d9d9d4"
_OURS = "#2a6fbb"
_THEIRS = "#c2452d"


def draw(growth: Growth, path: Path, machine: str) -> None:
    """Draw ``growth`` into the PNG file at ``path``, with ``machine`` in the caption."""
    spans = [point.spans for point in growth.points]
    first = min(count for count in spans if count)
    with mpl.rc_context({"font.size": 11, "text.color": _INK, "axes.labelcolor": _INK}):
        figure = Figure(figsize=(9.0, 5.4), dpi=140, facecolor=_GROUND, layout="constrained")
        axes = figure.add_subplot(facecolor=_GROUND)
        for label, colour, style, seconds in (
            ("SQLiteTracer (kantan-llm)", _THEIRS, "o-", [point.theirs for point in growth.points]),
            (
                "SQLiteRecorder, with the work of its thread",
                _OURS,
                "s--",
                [point.run + point.writing for point in growth.points],
            ),
            ("SQLiteRecorder, at the caller", _OURS, "s-", [point.run for point in growth.points]),
        ):
            axes.plot(spans, [value * 1e3 for value in seconds], style, color=colour, label=label, lw=2)
        axes.axhline(growth.unrecorded * 1e3, color=_INK, ls=":", lw=1.5, label="not recorded")
        # Linear up to the first size, so that the empty file has its place on the axis.
        axes.set_xscale("symlog", linthresh=first, linscale=0.6)
        axes.set_xlim(-first / 20, 1.4 * max(spans))
        axes.set_xticks(spans)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.set_xlabel("spans in the file")
        axes.set_ylabel("milliseconds a run (log scale)")
        axes.set_title("What a recorded run costs as the database grows", color=_INK, loc="left")
        axes.grid(color=_FAINT)
        axes.tick_params(colors=_INK)
        for spine in axes.spines.values():
            spine.set_color(_FAINT)
        axes.legend(frameon=False)
        figure.supxlabel(
            f"A run of two turns with a tool call, {machine}", fontsize=8, color=_INK, x=0.01, ha="left"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, facecolor=_GROUND)
