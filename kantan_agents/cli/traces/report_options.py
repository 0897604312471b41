"""The options of ``kantan-agents traces report``."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption
from kantan_agents.cli.terminal.prices import PriceOption, read_prices
from kantan_agents.cli.traces.options import (
    AgentOption,
    ErrorsOption,
    FailedSpansOption,
    LimitOption,
    MetaOption,
    PromptOption,
    RefusedOption,
    RubricOption,
    SinceOption,
    ToolOption,
    UntilOption,
    VersionOption,
)


def report(
    trace_id: Annotated[
        Optional[str],  # noqa: UP045 - Typer reads it at run time, on Python 3.10 too
        typer.Argument(
            metavar="ID",
            help="The run, named as for `show`; without it, the runs that the filters match.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The file; it is replaced if it exists.")
    ] = "run.html",
    redact: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--redact",
            metavar="NAME",
            help="Mask personal data too: with a Redact, as MODULE:NAME, or `default`.",
            show_default=False,
        ),
    ] = None,
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
    price: PriceOption = None,
) -> None:
    """Write runs as one HTML file, for a ticket or a mail.

    The file shows what `traces open` shows of a run, and needs neither a
    server nor a network. A new file is for its owner only.

    Example: kantan-agents traces report LAST -o run.html

    Exit codes: 0 written, 2 no such run, bad arguments, file or database.
    """
    from kantan_agents.cli.traces.filters import read_filters
    from kantan_agents.cli.traces.report import write_runs

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
    write_runs(db, trace_id, filters, output=output, redact=redact, prices=read_prices(price), limit=limit)
