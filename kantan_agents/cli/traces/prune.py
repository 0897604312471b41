"""``traces prune``: deletes old runs."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import typer

from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.progress import progress_bar
from kantan_agents.cli.terminal.read_quantities import read_duration, read_size
from kantan_agents.cli.terminal.show_quantities import counted, size_text
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.errors import InvalidOptionError

if TYPE_CHECKING:
    from kantan_agents.traces.store import PruneResult


def read_limits(*, older_than: str | None, keep: int | None, max_size: str | None) -> dict[str, Any]:
    """Return the options as keyword arguments of ``TraceStore.prune``."""
    if older_than is None and keep is None and max_size is None:
        options = "--older-than, --keep, --max-size"
        raise InvalidOptionError(option=options, reason="give at least one of them")
    age: timedelta | None = None if older_than is None else read_duration(older_than, "--older-than")
    size = None if max_size is None else read_size(max_size, "--max-size")
    return {"older_than": age, "keep": keep, "max_size": size}


def prune_traces(path: Path, limits: dict[str, Any], *, really: bool, vacuum: bool, as_json: bool) -> None:
    """Delete runs; unless ``really``, only list them."""
    store = open_store(path)
    with progress_bar("deleting") if really else nullcontext() as progress:
        result = store.prune(**limits, dry_run=not really, vacuum=vacuum, progress=progress)
    typer.echo(json_text(attrs.asdict(result)) if as_json else _summary(result))


def _summary(result: PruneResult) -> str:
    what = f"{counted(result.traces, 'trace')} with {counted(result.spans, 'span')}"
    before, after = size_text(result.bytes_before), size_text(result.bytes_after)
    if not result.traces and result.bytes_after >= result.bytes_before:
        return f"Nothing to delete: the database is {before}."
    free = f", of which {size_text(result.free_bytes)} are free for new runs" if result.free_bytes else ""
    shrink = "\nThe file does not shrink. Add --vacuum to write it anew." if result.free_bytes else ""
    if result.dry_run:
        return (
            f"Would delete {what}; the database is {before}, and would be about {after}{free}.{shrink}\n"
            "Nothing was deleted. Add --yes to delete."
        )
    return f"Deleted {what}; the database was {before}, and is {after}{free}.{shrink}"
