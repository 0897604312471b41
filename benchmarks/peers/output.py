"""Writes results: JSON, Markdown and charts."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.results import Results
from benchmarks.peers.table import markdown

PEERS_JSON = "peers.json"


def write(results: Results, folder: Path) -> list[Path]:
    """Write ``results`` in all formats into ``folder``, created if missing, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    data, table = folder / PEERS_JSON, folder / "peers.md"
    data.write_text(results.to_json(), encoding="utf-8")
    table.write_text(markdown(results), encoding="utf-8")
    from benchmarks.peers.charts import draw  # matplotlib is needed for this alone

    return [data, table, *draw(results, folder)]
