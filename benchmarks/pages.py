"""Puts measured tables into the pages that show them, so that no figure is copied by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.catalog import BY_ID
from benchmarks.peers.compared import FRAMEWORKS, OURS, PEERS, REPOSITORY
from benchmarks.peers.results import Cell, Results, Row
from benchmarks.peers.table import markdown

WHOLE_RUN = "python -m benchmarks"
_END = "<!-- end of results -->"
_TITLES = {framework.name: framework.title for framework in FRAMEWORKS}
_IN_SHORT = (
    "one_turn",
    "tool_turn",
    "tools_100",
    "tools_1000",
    "structured",
    "handoffs_10",
    "streaming",
    "at_once_50",
    "http_one_turn",
    "http_tools_100",
    "held_0",
    "held_100",
    "traced_million",
)


def written_pages(results: Results, folder: Path = REPOSITORY) -> list[Path]:
    """Write the tables of ``results`` into the pages of the repository at ``folder``; return their paths."""
    pages = {"README.md": in_short(results), "docs/performance.md": whole(results)}
    written = []
    for name, table in pages.items():
        path = folder / name
        path.write_text(with_results(path.read_text(encoding="utf-8"), table), encoding="utf-8")
        written.append(path)
    return written


def with_results(page: str, table: str, command: str = WHOLE_RUN) -> str:
    """Return ``page`` with ``table`` between the two marks of ``command``.

    Raises:
        ValueError: It has not got both.
    """
    begin = f"<!-- results of {command} -->"
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(_END)
    if not begun or not ended:
        raise ValueError(f"a page with results has {begin} and then {_END}")
    return f"{before}{begin}\n{table.strip()}\n{_END}{after}"


def whole(results: Results) -> str:
    """Return everything, without its heading: the page has one."""
    return markdown(results).partition("\n")[2]


def in_short(results: Results) -> str:
    """Return the ratios of the rows that most will look for."""
    names = [OURS, *(name for name in PEERS if name in results.versions)]
    rows = [["", *(_TITLES[name] for name in names), "A/A"], ["---", *("---:" for _ in [*names, ""])]]
    rows += [_line(row, names) for row in results.rows if row.workload in _IN_SHORT]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{table}\n\nMeasured on {results.machine}; 9 to {results.repeats} pairs of batches a row."


def _line(row: Row, names: Sequence[str]) -> list[str]:
    ratios = [_ratio(row.cells.get(name, Cell())) for name in names]
    control = "-" if row.control is None else f"{row.control.median:.2f}"
    return [BY_ID[row.workload].title, *ratios, control]


def _ratio(cell: Cell) -> str:
    return "-" if cell.ratio is None else f"{cell.ratio.median:.2f}"
