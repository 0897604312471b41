"""``traces copy``: copies runs between databases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import typer

from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.progress import progress_bar
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.cli.traces.open_store import open_store

if TYPE_CHECKING:
    from kantan_agents.traces.copying import CopyResult


def copy_runs(source: Path, target: Path, *, adopt: bool, as_json: bool) -> None:
    """Copy missing runs; after Ctrl-C, copied ones stay."""
    store = open_store(source)
    from kantan_agents.traces.copying import copy_traces

    done = total = 0

    def count(now: int, of: int) -> None:
        nonlocal done, total
        done, total = now, of

    try:
        with progress_bar("copying", count) as progress:
            result = copy_traces(store.path, target, adopt=adopt, progress=progress)
    except KeyboardInterrupt:
        typer.echo(f"Copied {done} of {counted(total, 'trace')}. Run the command again to go on.", err=True)
        raise
    typer.echo(json_text(attrs.asdict(result)) if as_json else _summary(result, target))


def _summary(result: CopyResult, target: Path) -> str:
    known = f" {counted(result.known, 'trace')} were there already." if result.known else ""
    left_out = f"\nNot copied: {', '.join(result.left_out)}." if result.left_out else ""
    copied = f"{counted(result.traces, 'trace')} with {counted(result.spans, 'span')}"
    return f"Copied {copied} to {one_line(str(target))}.{known}{left_out}"
