"""The options of ``kantan-agents traces``: shows, searches, exports and prunes the trace database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption, place_of
from kantan_agents.cli.terminal.new_app import new_app
from kantan_agents.cli.traces.one_run import diff, open_, prompts, show
from kantan_agents.cli.traces.options import (
    AgentOption,
    ErrorsOption,
    FailedSpansOption,
    JsonLinesOption,
    JsonOption,
    KeepOption,
    LimitOption,
    MaxSizeOption,
    MetaOption,
    OlderThanOption,
    PromptOption,
    RefusedOption,
    RubricOption,
    SinceOption,
    ToolOption,
    UntilOption,
    VersionOption,
)
from kantan_agents.cli.traces.report_options import report

app = new_app()


@app.callback(invoke_without_command=True)
def traces(context: typer.Context) -> None:
    """Look at the runs in a trace database: list, show, open, search, diff, export, prune, and more."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list")
def list_(
    db: DatabaseOption = DATABASE,
    agent: AgentOption = None,
    prompt: PromptOption = None,
    version: VersionOption = None,
    tool: ToolOption = None,
    meta: MetaOption = None,
    errors: ErrorsOption = None,
    failed_spans: FailedSpansOption = False,
    refused: RefusedOption = False,
    rubric_below: RubricOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 20,
    as_json: JsonOption = False,
) -> None:
    """List the newest runs that pass all filters.

    Exit codes: 0 listed, even if there is none, 2 bad arguments or database.
    """
    from kantan_agents.cli.traces.filters import read_filters

    filters = read_filters(
        agent=agent,
        prompt=prompt,
        version=version,
        tool=tool,
        meta=meta,
        errors=errors,
        failed_spans=failed_spans,
        refused=refused,
        rubric_below=rubric_below,
        since=since,
        until=until,
    )

    from kantan_agents.cli.traces.list import list_traces

    list_traces(db, filters, limit=limit, as_json=as_json)


app.command()(show)
app.command("open")(open_)
app.command()(report)
app.command("diff")(diff)


@app.command()
def search(
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS", help="Runs that contain all of them, in any case.")
    ],
    db: DatabaseOption = DATABASE,
    agent: AgentOption = None,
    prompt: PromptOption = None,
    version: VersionOption = None,
    tool: ToolOption = None,
    meta: MetaOption = None,
    errors: ErrorsOption = None,
    failed_spans: FailedSpansOption = False,
    refused: RefusedOption = False,
    rubric_below: RubricOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 20,
    as_json: JsonOption = False,
) -> None:
    """Find the runs whose inputs and outputs contain all words, tool calls included.

    Exit codes: 0 searched, even if nothing was found, 2 bad arguments or database.
    """
    from kantan_agents.cli.traces.filters import check_words, read_filters

    check_words(words)
    filters = read_filters(
        agent=agent,
        prompt=prompt,
        version=version,
        tool=tool,
        meta=meta,
        errors=errors,
        failed_spans=failed_spans,
        refused=refused,
        rubric_below=rubric_below,
        since=since,
        until=until,
    )

    from kantan_agents.cli.traces.search import search_traces

    search_traces(db, words, filters, limit=limit, as_json=as_json)


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
    limit: LimitOption = 20,
    as_json: JsonOption = False,
) -> None:
    """List failed verdicts by bucket, each with the run whose answer was judged.

    Exit codes: 0 listed, even if there is none, 2 bad arguments or database.
    """
    from kantan_agents.cli.traces.filters import check_finite

    check_finite(threshold, "--threshold")

    from kantan_agents.cli.traces.failed import list_failed

    list_failed(db, threshold=threshold, prompt=prompt, version=version, limit=limit, as_json=as_json)


@app.command()
def tail(db: DatabaseOption = DATABASE, as_json: JsonLinesOption = False) -> None:
    """Print one line for each new run when it ends, until Ctrl-C.

    Waits for a database that does not exist yet.
    Exit codes: 130 interrupted, 1 the output pipe was closed, 2 a bad database.
    """
    from kantan_agents.cli.traces.tail import tail_traces

    tail_traces(db, as_json=as_json)


@app.command()
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
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    agent: AgentOption = None,
    prompt: PromptOption = None,
    version: VersionOption = None,
    tool: ToolOption = None,
    meta: MetaOption = None,
    errors: ErrorsOption = None,
    failed_spans: FailedSpansOption = False,
    refused: RefusedOption = False,
    rubric_below: RubricOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--limit", metavar="N", min=1, help="At most the newest N.", show_default="all"),
    ] = None,
    experiments: Annotated[
        bool, typer.Option("--experiments", help="Write the experiments of `replay cohort` instead of runs.")
    ] = False,
    as_json: JsonLinesOption = False,
) -> None:
    """Write runs with all their spans as JSON Lines, the newest first.

    With --experiments, write each experiment with all its results. Filters
    are for runs only.

    Exit codes: 0 written, even if there is none, 2 bad arguments, files or database.
    """
    del as_json  # JSON Lines is the only format
    from kantan_agents.cli.traces.filters import read_filters

    filters = read_filters(
        agent=agent,
        prompt=prompt,
        version=version,
        tool=tool,
        meta=meta,
        errors=errors,
        failed_spans=failed_spans,
        refused=refused,
        rubric_below=rubric_below,
        since=since,
        until=until,
    )

    from kantan_agents.cli.traces.export import export_experiments, export_traces

    write = export_experiments if experiments else export_traces
    write(db, filters, output=output, force=force, limit=limit)


@app.command()
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
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write the recording of a run to a file, for `replay` and for tests.

    It has all that the models and tools have said, in clear text.
    Exit codes: 0 written, 2 no such run, not recorded completely, or a bad file or database.
    """
    from kantan_agents.cli.traces.save import save_recording

    save_recording(db, trace_id, output, run=run, force=force)


@app.command()
def prune(
    db: DatabaseOption = DATABASE,
    older_than: OlderThanOption = None,
    keep: KeepOption = None,
    max_size: MaxSizeOption = None,
    vacuum: Annotated[
        bool,
        typer.Option(
            "--vacuum",
            help="Write the whole file anew, to shrink one of an earlier version; nobody can write.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete, instead of only showing the effect.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete old runs; without --yes, only show what would be deleted.

    Give at least one limit; runs beyond any of them are deleted.
    Exit codes: 0 done, 2 bad arguments or database.
    """
    from kantan_agents.cli.traces.prune import prune_traces, read_limits

    limits = read_limits(older_than=older_than, keep=keep, max_size=max_size)
    prune_traces(db, limits, really=yes, vacuum=vacuum, as_json=as_json)


@app.command()
def index(
    db: DatabaseOption = DATABASE,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the index.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Build the index that makes searches for rare words fast, for a database that lacks it.

    Other processes can go on writing.
    Interrupted with Ctrl-C, it keeps what is done; run again, it goes on.
    Exit codes: 0 done, 2 bad arguments or database, 130 interrupted.
    """
    from kantan_agents.cli.traces.index import index_traces

    index_traces(db, remove=remove, as_json=as_json)


@app.command()
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

    Interrupted with Ctrl-C, it keeps what is done; run again, it goes on.
    Exit codes: 0 done, 2 bad arguments or database, 130 interrupted.
    """
    from kantan_agents.cli.traces.copy import copy_runs

    copy_runs(source, target, adopt=adopt, as_json=as_json)
