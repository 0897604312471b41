"""``eval dataset``: writes recorded runs as a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import typer

from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.cli.traces.export import check_target
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.cli.traces.records import short_id


def write_dataset(path: Path, output: str, filters: Mapping[str, Any], *, force: bool, as_json: bool) -> None:
    """Write the runs that pass all filters."""
    target = check_target(output, path, force=force)
    store = open_store(path)

    from kantan_agents.lab.evaluation import Dataset

    dataset = Dataset.from_traces(store, **filters)
    dataset.save(target)
    if as_json:
        skipped = [attrs.asdict(one) for one in dataset.skipped]
        typer.echo(json_text({"path": output, "cases": len(dataset), "skipped": skipped}))
        return
    for one in dataset.skipped:
        typer.echo(one_line(f"left out: {short_id(one.trace_id)}: {one.reason}"), err=True)
    typer.echo(f"{counted(len(dataset), 'case')} written to {one_line(output)}", err=True)
