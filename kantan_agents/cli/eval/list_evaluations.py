"""``eval list``: prints the stored evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import typer
from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, wide_terminal
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text, iso_time, local_time, short_time
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.lab.evaluation import Evaluation
from kantan_agents.lab.evaluation.experiment.evaluation import RunCounts, count_runs

_COLUMNS: Final = (
    Column("name", longest=60),
    Column("started"),
    Column("dataset", longest=24, drop=2),
    Column("cases", right=True, named=True),
    Column("runs", right=True, named=True),
    Column("failed", right=True, named=True),
    Column("variants", own_line=True, rest=True, narrowest=12),
)


def list_evaluations(path: Path, *, limit: int | None, as_json: bool) -> None:
    """Print the latest evaluations."""
    found = Evaluation.load_all(open_store(path))[:limit]
    counts = [count_runs(one) for one in found]
    if as_json:
        typer.echo(json_text([_data(*pair) for pair in zip(found, counts, strict=True)]))
    elif found:
        console = wide_terminal()
        width = line_width(console)
        rows = [_row(*pair, in_pipe=width is None) for pair in zip(found, counts, strict=True)]
        print_lines(console, row_lines(_COLUMNS, rows, width))
    else:
        typer.echo("The database holds no evaluations.")


def _row(evaluation: Evaluation, counts: RunCounts, *, in_pipe: bool) -> list[Text]:
    started = evaluation.row.created_at
    return [
        cell(evaluation.name, ACCENT),
        cell(local_time(started) if in_pipe else short_time(started)),
        cell(evaluation.dataset),
        cell(count_text(counts.cases)),
        cell(f"{count_text(counts.finished + counts.failed)}/{count_text(evaluation.planned)}"),
        cell(count_text(counts.failed), BAD if counts.failed else ""),
        cell(", ".join(evaluation.variants)),
    ]


def _data(evaluation: Evaluation, counts: RunCounts) -> dict[str, Any]:
    return {
        "name": evaluation.name,
        "created_at": iso_time(evaluation.row.created_at),
        "dataset": evaluation.dataset,
        "variants": list(evaluation.variants),
        "repeats": evaluation.repeats,
        "planned": evaluation.planned,
        "cases": counts.cases,
        "finished": counts.finished,
        "failed": counts.failed,
    }
