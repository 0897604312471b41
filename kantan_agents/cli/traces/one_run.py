"""Options of ``traces`` commands for one run."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption
from kantan_agents.cli.terminal.grouped import grouped
from kantan_agents.cli.terminal.output_options import JsonOption
from kantan_agents.cli.terminal.prices import PriceOption, read_prices
from kantan_agents.cli.traces.options import (
    NO_FILTERS,
    FilterOptions,
    LimitOption,
)


def show(
    trace_id: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The id that `traces list` shows, a trace id, a run id, the unique start of either, or "
            "LAST for the latest run.",
        ),
    ],
    db: DatabaseOption = DATABASE,
    full: Annotated[
        bool, typer.Option("--full", help="Show complete inputs and outputs; otherwise long ones are cut.")
    ] = False,
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
    instructions: Annotated[
        bool,
        typer.Option("--instructions", help="Show the instructions and settings of each model call too."),
    ] = False,
    tools: Annotated[
        bool,
        typer.Option(
            "--tools", help="Show the tools of each model call too, and what the tool rules decided."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show one run: its metadata, and its spans as a tree with their inputs and outputs.

    The SDK's own task and turn spans are omitted, unless one has an error.
    If the record of the run is incomplete, the output states it.

    Exit codes: 0 shown, 2 no such run, or a bad database.
    """
    from kantan_agents.cli.traces.show import TraceView, show_trace

    view = TraceView(full=full, depth=depth, sdk_spans=all_spans, instructions=instructions, tools=tools)
    show_trace(db, trace_id, view, as_json=as_json)


def open_(
    trace_id: Annotated[
        Optional[str],  # noqa: UP045 - Typer reads it at run time, on Python 3.10 too
        typer.Argument(metavar="ID", help="Open this run, named as for `show`.", show_default=False),
    ] = None,
    db: DatabaseOption = DATABASE,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65_535,
            help="The port; by default a free one.",
            show_default=False,
        ),
    ] = 0,
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="The host to bind; others need --token.")
    ] = "127.0.0.1",
    token: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--token",
            metavar="SECRET",
            envvar="KANTAN_AGENTS_PAGE_TOKEN",
            help="The secret of every request, 16 characters or more; by default a random one.",
            show_default=False,
        ),
    ] = None,
    price: PriceOption = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address, and open no browser.")
    ] = False,
) -> None:
    """Show runs, prompts, comparisons and labels in the browser, until Ctrl-C.

    Example: kantan-agents traces open LAST --db traces.sqlite3

    The page is served by this machine, for this machine only, and makes no
    request to anywhere else. The printed address has a token, without which
    no one else can open it. With --price it shows the cost of runs.

    Exit codes: 130 interrupted, 2 no such run, or a bad argument or database.
    """
    from kantan_agents.cli.traces.open import open_page

    open_page(
        db, trace_id, host=host, port=port, token=token, prices=read_prices(price), browser=not no_browser
    )


def diff(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run, named as for `show`.")],
    other: Annotated[str, typer.Argument(metavar="RUN", help="The run to compare it with.")],
    db: DatabaseOption = DATABASE,
    as_json: JsonOption = False,
) -> None:
    """Show where two runs diverge: the first model call whose request or answer differs, and in which part.

    Below it, the calls, tokens and outputs of both runs. New ids from the
    provider do not count as a difference.

    Exit codes: 0 no difference, 1 they differ, 2 no such run, or a bad database.
    """
    from kantan_agents.cli.traces.diff import diff_runs

    diff_runs(db, run, other, as_json=as_json)


def prompts(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(metavar="NAME", help="Compare the versions of this prompt.", show_default=False),
    ] = None,
    versions: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="[OLD NEW]", help="With --diff, compare these two.", show_default=False),
    ] = None,
    db: DatabaseOption = DATABASE,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show the changes from each version to the next.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare prompt versions: runs, failures, scores, tokens, latency; with --diff, their wording.

    Without NAME, print a row for each version of each prompt.
    With it, print its versions side by side. The failure rate is the share of
    the runs that have ended.

    Example: kantan-agents traces prompts support v1 v3 --diff

    Exit codes: 0 compared, even without prompts, 2 bad arguments or database.
    """
    from kantan_agents.cli.traces.prompt_diff import check_versions, diff_prompts
    from kantan_agents.cli.traces.prompts import compare_prompts

    chosen = check_versions(name, versions or (), diff=diff)
    if diff:
        diff_prompts(db, str(name), chosen, as_json=as_json)
    else:
        compare_prompts(db, name, as_json=as_json)


@grouped
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
    filters: FilterOptions = NO_FILTERS,
    limit: LimitOption = 20,
    price: PriceOption = None,
) -> None:
    """Write runs as one HTML file, for a ticket or an email.

    The file shows what `traces open` shows of a run, and needs neither a
    server nor a network. A new file is for its owner only.

    Example: kantan-agents traces report LAST -o run.html

    Exit codes: 0 written, 2 no such run, bad arguments, file or database.
    """
    from kantan_agents.cli.traces.filters import read_filters
    from kantan_agents.cli.traces.report import write_runs

    wanted = read_filters(filters)
    write_runs(db, trace_id, wanted, output=output, redact=redact, prices=read_prices(price), limit=limit)
