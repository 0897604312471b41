"""The options of ``kantan-agents traces``: shows, searches, exports and prunes the trace database."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption
from kantan_agents.cli.terminal.new_app import new_app
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

app = new_app()


@app.callback(invoke_without_command=True)
def traces(context: typer.Context) -> None:
    """Look at the runs in a trace database: list, show, search, compare, follow, export, prune."""
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


@app.command()
def show(
    trace_id: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The id that `list` shows, a trace id, a run id, the unique beginning of either, or LAST for"
            " the newest run.",
        ),
    ],
    db: DatabaseOption = DATABASE,
    full: Annotated[bool, typer.Option("--full", help="Show complete inputs and outputs.")] = False,
    depth: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--depth",
            metavar="N",
            min=1,
            help="Show N levels of the tree, and how many spans are below them.",
            show_default="all",
        ),
    ] = None,
    all_spans: Annotated[
        bool, typer.Option("--all", help="Show the SDK's own task and turn spans too.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show one run: its metadata, and its spans as a tree with their inputs and outputs.

    The SDK's own task and turn spans are left out, unless one has an error.
    Exit codes: 0 shown, 2 no such run, or a bad database.
    """
    from kantan_agents.cli.traces.show import View, show_trace

    show_trace(db, trace_id, View(full=full, depth=depth, sdk_spans=all_spans), as_json=as_json)


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


@app.command()
def prompts(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(metavar="NAME", help="Compare the versions of this prompt.", show_default=False),
    ] = None,
    db: DatabaseOption = DATABASE,
    as_json: JsonOption = False,
) -> None:
    """Compare prompt versions: runs, failures, scores, tokens, latency.

    Without NAME, print a row for each version of each prompt.
    With it, print its versions side by side.
    Exit codes: 0 compared, even if there is none, 2 bad arguments or database.
    """
    from kantan_agents.cli.traces.prompts import compare_prompts

    compare_prompts(db, name, as_json=as_json)


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
    as_json: JsonLinesOption = False,
) -> None:
    """Write runs with all their spans as JSON Lines, the newest first.

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

    from kantan_agents.cli.traces.export import export_traces

    export_traces(db, filters, output=output, force=force, limit=limit)


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
