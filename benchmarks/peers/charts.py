"""Draws charts of the results. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path

from matplotlib.ticker import FuncFormatter

from benchmarks.peers.catalog import BY_ID
from benchmarks.peers.compared import FRAMEWORKS, OURS, PEERS, PLAIN
from benchmarks.peers.results import Results, Row
from benchmarks.plot import INK, framed

COLOURS = {
    PLAIN: "#8c8c94",
    OURS: "#2a6fbb",
    "kantan_agents_published": "#6aa5e0",
    "pydantic_ai": "#c2452d",
    "langgraph": "#b0a22c",
}
_TITLES = {framework.name: framework.title for framework in FRAMEWORKS}
_BAR = 0.8
"""Share of a row's height that its bars take."""

_ROW_INCHES = 0.62
_BORDER_INCHES = 1.6

_MARGIN = 1.6
"""Ratio of the end of the axis to that of the longest bar; the gap has space for the bar's number."""


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw the charts that have data as PNG files into ``folder``, and return their paths."""
    drawn = []
    ratios = [row for row in results.rows if row.cells[OURS].ratio is not None]
    names = [OURS, *(name for name in PEERS if name in results.versions)]
    if ratios:
        # The plain SDK has ratios for recorded runs.
        drawn.append(_draw_ratios(results, ratios, [PLAIN, *names], folder / "peers.png"))
    late = [row for row in results.rows if row.cells[OURS].late is not None]
    if late:
        drawn.append(_draw_lateness(results, late, [PLAIN, *names], folder / "lag.png"))
    return drawn


def _draw_ratios(results: Results, rows: list[Row], names: list[str], path: Path) -> Path:
    figures = {
        name: {
            row.workload: cell.ratio.median
            for row in rows
            if (cell := row.cells.get(name)) is not None and cell.ratio is not None
        }
        for name in names
    }
    return _bars(
        path,
        rows,
        figures,
        title="What a run costs, as a ratio to the plain SDK",
        axis="ratio, log scale; less is better. Recorded runs: to the same run, not recorded",
        caption=_caption(results),
        start=1.0,
    )


def _draw_lateness(results: Results, rows: list[Row], names: list[str], path: Path) -> Path:
    figures = {
        name: {
            row.workload: cell.late[1] * 1e3
            for row in rows
            if (cell := row.cells.get(name)) is not None and cell.late is not None
        }
        for name in names
    }
    return _bars(
        path,
        rows,
        figures,
        title="How late the event loop is while many runs go on",
        axis="milliseconds, 99th percentile; less is better",
        caption=_caption(results),
        start=0.0,
    )


def _caption(results: Results) -> str:
    quick = "; a quick check" if results.is_quick else ""
    return f"{results.machine}, {results.measured_on}{quick}"


def _bars(
    path: Path,
    rows: list[Row],
    figures: dict[str, dict[str, float]],
    *,
    title: str,
    axis: str,
    caption: str,
    start: float,
) -> Path:
    """Draw a group of bars a row; they begin at ``start``, on a logarithmic axis unless that is 0."""
    figures = {name: of_one for name, of_one in figures.items() if of_one}
    drawn = [start, *(figure for of_one in figures.values() for figure in of_one.values())]
    thickness = _BAR / len(figures)
    size = (9.0, _BORDER_INCHES + _ROW_INCHES * len(rows))
    with framed(path, size, title=title, caption=caption) as axes:
        if start:
            axes.set_xscale("log")
            axes.set_xlim(min(drawn) / _MARGIN, max(drawn) * _MARGIN)
        else:
            axes.set_xlim(0.0, max(drawn) * _MARGIN)
        for number, (name, of_one) in enumerate(figures.items()):
            offset = (number + 0.5) * thickness - _BAR / 2
            places = [place + offset for place, row in enumerate(rows) if row.workload in of_one]
            values = [of_one[row.workload] for row in rows if row.workload in of_one]
            widths = [value - start for value in values]
            axes.barh(places, widths, thickness, left=start, color=COLOURS[name], label=_TITLES[name])
            for place, value in zip(places, values, strict=True):
                is_left = value < start
                axes.annotate(
                    f"{value:,.2f}" if value < 10 else f"{value:,.0f}",  # noqa: PLR2004 - three digits
                    (value, place),
                    xytext=(-3 if is_left else 3, 0),
                    textcoords="offset points",
                    ha="right" if is_left else "left",
                    va="center",
                    fontsize=6.5,
                )
        if start:
            axes.axvline(start, color=INK, lw=1.2)
        axes.set_yticks(range(len(rows)), [BY_ID[row.workload].title for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
        axes.set_xlabel(axis)
        axes.grid(visible=False, axis="y")
        axes.legend(frameon=False, fontsize=9, loc="best")
    return path
