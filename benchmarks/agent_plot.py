"""Draws the cost of finding and loading agents against the number of files. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.plot import cost_plot

_LINES = (
    ("#2a6fbb", "s-"),
    ("#6aa5e0", "s--"),
    ("#2f7d4f", "o-"),
    ("#74b38d", "o--"),
    ("#b0a22c", "^--"),
    ("#c2452d", "o-"),
)


def draw(sizes: Sequence[int], series: Mapping[str, Sequence[float]], path: Path, machine: str) -> None:
    """Draw the seconds of each series against ``sizes`` into the PNG file at ``path``."""
    title, caption = "What agents cost as their number grows", f"Files of 1 to 8 kB, {machine}"
    with cost_plot(path, sizes, title=title, x="agent files", y="milliseconds", caption=caption) as axes:
        for (label, seconds), (colour, style) in zip(series.items(), _LINES, strict=True):
            axes.plot(sizes, [value * 1e3 for value in seconds], style, color=colour, label=label, lw=2)
