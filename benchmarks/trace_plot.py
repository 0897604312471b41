"""Draws the cost of a run against the number of spans in the file. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path

from benchmarks.plot import INK, cost_plot
from benchmarks.trace_growth import Growth

_OURS = "#2a6fbb"
_THEIRS = "#c2452d"


def draw(growth: Growth, path: Path, machine: str) -> None:
    """Draw ``growth`` into the PNG file at ``path``, with ``machine`` in the caption."""
    spans = [point.spans for point in growth.points]
    first = min(count for count in spans if count)
    with cost_plot(
        path,
        spans,
        title="What a recorded run costs as the database grows",
        x="spans in the file",
        y="milliseconds a run",
        caption=f"A run of two turns with a tool call, {machine}",
    ) as axes:
        # Linear up to the first size, so that the axis includes the empty file.
        axes.set_xscale("symlog", linthresh=first, linscale=0.6)
        axes.set_xlim(-first / 20, 1.4 * max(spans))
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
        axes.axhline(growth.unrecorded * 1e3, color=INK, ls=":", lw=1.5, label="not recorded")
