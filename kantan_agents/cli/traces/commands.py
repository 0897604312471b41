"""The commands of ``kantan-agents traces`` and their options."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption
from kantan_agents.cli.terminal.grouped import grouped
from kantan_agents.cli.terminal.new_app import new_group
from kantan_agents.cli.terminal.output_options import JsonOption, ListLimitOption, most_of
from kantan_agents.cli.traces.database_commands import copy, export, index, prune, save
from kantan_agents.cli.traces.one_run import diff, open_, prompts, report, show
from kantan_agents.cli.traces.options import (
    NO_FILTERS,
    FilterOptions,
    JsonLinesOption,
)

app = new_group()


@app.command("list")
@grouped
def list_(
    db: DatabaseOption = DATABASE,
    filters: FilterOptions = NO_FILTERS,
    limit: ListLimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the latest runs that pass all filters.

    A run has one of these states, or the message of the error that stopped it:

    ok: it ended with an answer, was stopped after a turn, or waits for approval
    recovered: it ended with an answer, but something in it failed
    cut off: it ended with an answer that is cut off
    unfinished: it has not ended yet, or its process was killed

    A pipe gets one line for each run, with all columns, complete ids and times.

    Example: kantan-agents traces list --prompt support --errors --since 2h

    Exit codes: 0 listed, even without runs, 2 bad arguments or database.
    """
    from kantan_agents.cli.traces.filters import read_filters

    wanted = read_filters(filters)

    from kantan_agents.cli.traces.list import list_traces

    list_traces(db, wanted, limit=most_of(limit, as_json=as_json), as_json=as_json)


app.command()(show)
app.command("open")(open_)
app.command()(report)
app.command("diff")(diff)


@app.command()
@grouped
def search(
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS", help="Runs that contain all of them, in any case.")
    ],
    db: DatabaseOption = DATABASE,
    filters: FilterOptions = NO_FILTERS,
    limit: ListLimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the runs whose inputs and outputs contain all words, tool calls included.

    No character is a wildcard. `traces index` makes rare words fast.

    Example: kantan-agents traces search invoice refund --since 7d

    Exit codes: 0 searched, even if no run was found, 2 bad arguments or database.
    """
    from kantan_agents.cli.traces.filters import check_words, read_filters

    check_words(words)
    wanted = read_filters(filters)

    from kantan_agents.cli.traces.search import search_traces

    search_traces(db, words, wanted, limit=most_of(limit, as_json=as_json), as_json=as_json)


app.command()(prompts)


@app.command()
def failed(
    db: DatabaseOption = DATABASE,
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="SCORE", help="Verdicts below this are failures.")
    ] = 0.5,
    prompt: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--prompt", metavar="NAME", help="Verdicts on this prompt.", show_default=False),
    ] = None,
    version: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--version", metavar="VERSION", help="Verdicts on this version of a prompt.", show_default=False
        ),
    ] = None,
    limit: ListLimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """List failed verdicts by bucket, each with the run whose answer was judged.

    The buckets are from kantan-llm. A judge that runs separately names the run
    in its metadata, as judged_trace_id.

    Exit codes: 0 listed, even without verdicts, 2 bad arguments or database.
    """
    from kantan_agents.cli.traces.filters import check_finite

    check_finite(threshold, "--threshold")

    from kantan_agents.cli.traces.failed import list_failed

    most = most_of(limit, as_json=as_json)
    list_failed(db, threshold=threshold, prompt=prompt, version=version, limit=most, as_json=as_json)


@app.command()
def tail(db: DatabaseOption = DATABASE, as_json: JsonLinesOption = False) -> None:
    """Print one line for each new run when it ends, until Ctrl-C.

    Waits for a database that does not exist yet.

    Exit codes: 130 interrupted, 1 the output pipe was closed, 2 a bad database.
    """
    from kantan_agents.cli.traces.tail import tail_traces

    tail_traces(db, as_json=as_json)


app.command()(export)
app.command()(save)
app.command()(prune)
app.command()(index)
app.command()(copy)
