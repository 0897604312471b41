"""Writes measured tables into the page that shows them, so that no figure is copied by hand."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.compared import REPOSITORY
from benchmarks.peers.results import Results
from benchmarks.peers.table import tables

WHOLE_RUN = "python -m benchmarks"
_END = "<!-- end of results -->"
_PAGE = "docs/performance.md"


def written_page(results: Results, folder: Path = REPOSITORY) -> Path:
    """Write the tables of ``results`` into the page of the repository at ``folder``; return its path."""
    path = folder / _PAGE
    path.write_text(with_results(path.read_text(encoding="utf-8"), whole(results)), encoding="utf-8")
    return path


def with_results(page: str, table: str, command: str = WHOLE_RUN) -> str:
    """Return ``page`` with ``table`` between the two marks of ``command``.

    Raises:
        ValueError: A mark is missing.
    """
    begin = f"<!-- results of {command} -->"
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(_END)
    if not begun or not ended:
        raise ValueError(f"a page with results has {begin} and then {_END}")
    return f"{before}{begin}\n{table.strip()}\n{_END}{after}"


def whole(results: Results) -> str:
    """Return the tables of the page; ``benchmarks/results/peers.md`` has the rest."""
    return tables(results)
