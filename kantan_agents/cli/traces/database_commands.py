"""Options of ``traces`` commands that change the database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption, place_of
from kantan_agents.cli.terminal.grouped import grouped
from kantan_agents.cli.terminal.output_options import ForceOption, JsonOption
from kantan_agents.cli.traces.options import (
    NO_FILTERS,
    FilterOptions,
    JsonLinesOption,
    KeepOption,
    MaxSizeOption,
    OlderThanOption,
)


@grouped
def export(
    db: DatabaseOption = DATABASE,
    output: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write to this file; it appears when it is complete.",
            show_default=False,
        ),
    ] = None,
    force: ForceOption = False,
    filters: FilterOptions = NO_FILTERS,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--limit", metavar="N", min=1, help="At most the latest N.", show_default="all"),
    ] = None,
    experiments: Annotated[
        bool, typer.Option("--experiments", help="Write the experiments of `replay cohort` instead of runs.")
    ] = False,
    as_json: JsonLinesOption = False,
) -> None:
    """Write runs with all their spans as JSON Lines, the latest first.

    With --experiments, write each experiment with all its results. Filters
    are for runs only. A new file is for its owner only; a replaced one has the
    same mode as before.

    Example: kantan-agents traces export --prompt support --output runs.jsonl

    Exit codes: 0 written, even without runs, 2 bad arguments, files or database.
    """
    del as_json  # JSON Lines is the only format
    from kantan_agents.cli.traces.filters import read_filters

    wanted = read_filters(filters)

    from kantan_agents.cli.traces.export import export_experiments, export_traces

    write = export_experiments if experiments else export_traces
    write(db, wanted, output=output, force=force, limit=limit)


def save(
    trace_id: Annotated[str, typer.Argument(metavar="ID", help="The run, as for `show`.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The file to write.", show_default=False)
    ],
    db: DatabaseOption = DATABASE,
    run: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--run", metavar="RUN", help="Run id, if the trace has several runs.", show_default=False
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write the recording of a run to a file, for `replay` and for tests.

    It has all messages of the models and tools, in plain text.

    Example: kantan-agents traces save LAST --output tests/refund.json

    Exit codes: 0 written, 2 no such run, not recorded completely, or a bad file or database.
    """
    from kantan_agents.cli.traces.save import save_recording

    save_recording(db, trace_id, output, run=run, force=force)


def prune(
    db: DatabaseOption = DATABASE,
    older_than: OlderThanOption = None,
    keep: KeepOption = None,
    max_size: MaxSizeOption = None,
    vacuum: Annotated[
        bool,
        typer.Option(
            "--vacuum",
            help="Rewrite the whole file, to shrink one of an earlier version; no one else can write "
            "meanwhile.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete, instead of only showing the effect.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete old runs; without --yes, only show what would be deleted.

    Give at least one limit; runs beyond any of them are deleted.

    Example: kantan-agents traces prune --older-than 30d --max-size 2GB --yes

    Exit codes: 0 done, 2 bad arguments or database.
    """
    from kantan_agents.cli.traces.prune import prune_traces, read_limits

    limits = read_limits(older_than=older_than, keep=keep, max_size=max_size)
    prune_traces(db, limits, really=yes, vacuum=vacuum, as_json=as_json)


def index(
    db: DatabaseOption = DATABASE,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the index.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Build the index that makes searches for rare words fast, for a database that lacks it.

    Other processes can continue to write. After Ctrl-C, the finished part is
    stored, and the next call resumes.

    Exit codes: 0 done, 2 bad arguments or database, 130 interrupted.
    """
    from kantan_agents.cli.traces.index import index_traces

    index_traces(db, remove=remove, as_json=as_json)


def copy(
    source: Annotated[
        Path,
        typer.Argument(metavar="FROM", parser=place_of, help="A database: a file, or a postgresql:// URL."),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TO", parser=place_of, help="Another one; created if it is missing.")
    ],
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Add the tables to a database of another program.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy the runs that another database lacks: from a file to Postgres, back, or to another file.

    Evaluations, scores, experiments and rollouts are not copied; the output
    names them. After Ctrl-C, the copied runs are stored, and the next call
    resumes.

    Example: kantan-agents traces copy traces.sqlite3 postgresql://user@host/traces

    Exit codes: 0 done, 2 bad arguments or database, 130 interrupted.
    """
    from kantan_agents.cli.traces.copy import copy_runs

    copy_runs(source, target, adopt=adopt, as_json=as_json)
