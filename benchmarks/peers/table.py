"""The results as Markdown, one row per workload."""

from __future__ import annotations

from benchmarks.peers.catalog import BY_ID, Workload
from benchmarks.peers.compared import FRAMEWORKS, OURS, PEERS, PLAIN
from benchmarks.peers.goals import ahead, is_missed, missed
from benchmarks.peers.results import Cell, Results, Row
from benchmarks.peers.rounds import Spread

_TITLES = {framework.name: framework.title for framework in FRAMEWORKS}
_UNITS = {"held": (1 / 1024, "KiB"), "import": (1e3, "ms")}
_MICROSECONDS = (1e6, "us")

_HOW_TO_READ = """\
Ratios are to the plain SDK. The ratio of a recorded run is to the same run without recording; the plain SDK
and 0.1.3 record with kantan-llm's tracer. In brackets: the quartiles. A/A is the plain SDK against itself:
the noise. Bold: a peer is ahead. Memory is counted over {held} and {held_tools} waiting runs. Compare times
within a row only.
"""


def markdown(results: Results) -> str:
    """Return the tables with their explanations, what is missing from them, and all versions."""
    lines = [
        "# kantan_agents and other frameworks",
        "",
        *_tables(results),
        *_section("Missed goals", missed(results)),
        *_section("Without results", _absent(results)),
        *_section(
            "Failed",
            [f"{BY_ID[name].title}: {reason.splitlines()[0]}" for name, reason in results.failed.items()],
        ),
        *_section("Left out", [f"{_TITLES[name]}: {reason}" for name, reason in results.left_out.items()]),
        *_section(
            "Versions", [f"{_TITLES[name]}: {_versions(results, name)}" for name in _shown_of(results)]
        ),
    ]
    return "\n".join(lines).rstrip() + "\n"


def tables(results: Results) -> str:
    """Return the tables alone, for a page that explains them itself."""
    return "\n".join(_tables(results)).rstrip() + "\n"


def _tables(results: Results) -> list[str]:
    shown = _shown_of(results)
    return [
        _measured(results),
        "",
        *_lines_of(["", *(_TITLES[name] for name in shown), "A/A", "goal"]),
        *(_line(_cells(row, shown)) for row in results.rows),
        "",
        _HOW_TO_READ.format(held=f"{BY_ID['held_0'].size:,}", held_tools=f"{BY_ID['held_100'].size:,}"),
        *_lateness(results, shown),
    ]


def _shown_of(results: Results) -> list[str]:
    return [PLAIN, OURS, *(name for name in PEERS if name in results.versions)]


def _measured(results: Results) -> str:
    return (
        f"Measured on {results.measured_on}: {results.machine}; 9 to {results.repeats} pairs of batches in "
        f"{results.generations} groups of fresh processes."
        + (" A quick check: sizes are smaller than the rows say." if results.is_quick else "")
    )


def amount(workload: Workload, spread: Spread) -> str:
    """Return the median and the quartiles with their unit."""
    factor, unit = _UNITS.get(workload.kind, _MICROSECONDS)
    scaled = spread.times(factor)
    digits = 1 if scaled.median < 100 else 0  # noqa: PLR2004 - three digits are enough
    low, median, high = (f"{figure:,.{digits}f}" for figure in (scaled.low, scaled.median, scaled.high))
    return f"{median} {unit} ({low}-{high})"


def _lines_of(headings: list[str]) -> list[str]:
    return [_line(headings), _line(["---", *("---:" for _ in headings[1:])])]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(row: Row, names: list[str]) -> list[str]:
    workload = BY_ID[row.workload]
    peers_ahead = ahead(row)
    cells = [workload.title]
    for name in names:
        cell = row.cells.get(name, Cell())
        text = _shown(workload, name, cell)
        cells.append(f"**{text}**" if name in peers_ahead else text)
    return [*cells, "-" if row.control is None else _ratio(row.control), _goal(workload, row.cells[OURS])]


def _shown(workload: Workload, name: str, cell: Cell) -> str:
    if cell.value is None:
        return "-"
    if cell.ratio is None:
        return amount(workload, cell.value)
    if workload.limit is not None and name == OURS:
        return f"{_ratio(cell.ratio)}, {amount(workload, cell.value)}"
    return _ratio(cell.ratio) if name in (OURS, PLAIN) else f"{cell.ratio.median:.2f}"


def _ratio(spread: Spread) -> str:
    return f"{spread.median:.2f} ({spread.low:.2f}-{spread.high:.2f})"


def _goal(workload: Workload, cell: Cell) -> str:
    if workload.goal is None and workload.limit is None:
        return "-"
    goal = f"{workload.goal:.2f}" if workload.goal is not None else f"{workload.limit:g} us"
    return f"{goal}, {'missed' if is_missed(workload, cell) else 'met'}"


def _lateness(results: Results, names: list[str]) -> list[str]:
    rows = [row for row in results.rows if any(cell.late for cell in row.cells.values())]
    if not rows:
        return []
    lines = ["Delay of the event loop, median and 99th percentile, in milliseconds:", ""]
    lines += _lines_of(["", *(_TITLES[name] for name in names), "A/A: plain SDK again"])
    for row in rows:
        late = [*(row.cells.get(name, Cell()).late for name in names), row.control_late]
        shown = [
            "-" if pair is None else " / ".join(f"{seconds * 1e3:,.1f}" for seconds in pair) for pair in late
        ]
        lines.append(_line([BY_ID[row.workload].title, *shown]))
    return [*lines, ""]


def _absent(results: Results) -> list[str]:
    return [
        f"{BY_ID[row.workload].title}, {_TITLES[name]}: {cell.absent}"
        for row in results.rows
        for name, cell in row.cells.items()
        if cell.absent is not None
    ]


def _versions(results: Results, name: str) -> str:
    return ", ".join(f"{package} {version}" for package, version in results.versions[name].items())


def _section(title: str, lines: list[str] | tuple[str, ...]) -> list[str]:
    return [f"{title}:", "", *(f"- {line}" for line in lines), ""] if lines else []
