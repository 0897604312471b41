"""``traces index``: builds or removes the search index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import typer

from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.progress import progress_bar
from kantan_agents.cli.terminal.show_quantities import counted, size_text
from kantan_agents.cli.traces.open_store import open_store

if TYPE_CHECKING:
    from kantan_agents.traces.store import IndexResult


def index_traces(path: Path, *, remove: bool, as_json: bool) -> None:
    """Build or remove the index; after Ctrl-C, indexed runs stay."""
    store = open_store(path)
    if remove:
        result = store.remove_index()
        typer.echo(json_text(attrs.asdict(result)) if as_json else f"Removed the index; {_sizes(result)}.")
        return
    done = total = 0

    def count(now: int, of: int) -> None:
        nonlocal done, total
        done, total = now, of

    try:
        with progress_bar("indexing", count) as progress:
            result = store.build_index(progress=progress)
    except KeyboardInterrupt:
        typer.echo(f"Indexed {done} of {counted(total, 'trace')}. Run the command again to go on.", err=True)
        raise
    typer.echo(json_text(attrs.asdict(result)) if as_json else _summary(result))


def _summary(result: IndexResult) -> str:
    skipped = ""
    if result.skipped:
        skipped = f"\n{counted(result.skipped, 'trace')} are too long for the index. Searches read them."
    if not result.traces:
        return f"Nothing to index; the database is {size_text(result.bytes_after)}.{skipped}"
    return f"Indexed {counted(result.traces, 'trace')}; {_sizes(result)}.{skipped}"


def _sizes(result: IndexResult) -> str:
    return f"the database was {size_text(result.bytes_before)}, and is {size_text(result.bytes_after)}"
