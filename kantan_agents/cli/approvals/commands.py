"""The group ``kantan-agents approvals``."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.author import author
from kantan_agents.cli.terminal.durable_database import DURABLE_DATABASE, DurableDatabaseOption
from kantan_agents.cli.terminal.new_app import new_group
from kantan_agents.cli.terminal.output_options import JsonOption

app = new_group()

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run.")]
CallArgument = Annotated[
    Optional[str],  # noqa: UP045
    typer.Argument(
        metavar="[CALL]", help="Id of the call. Not needed if only one waits.", show_default=False
    ),
]
ByOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--by", metavar="NAME", help="Who answers. Default: the name of the user.", show_default=False
    ),
]


@app.command("list")
def list_approvals(
    show_all: Annotated[bool, typer.Option("--all", help="List answered calls too.")] = False,
    run: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--run", metavar="RUN", help="Only calls of this run.", show_default=False),
    ] = None,
    db: DurableDatabaseOption = DURABLE_DATABASE,
    as_json: JsonOption = False,
) -> None:
    """List the tool calls that wait for an approval, the oldest first.

    Exit codes: 0 listed, 2 the database cannot be read.
    """
    from kantan_agents.cli.approvals.list import print_approvals

    print_approvals(db, answered=show_all, run_id=run, as_json=as_json)


@app.command()
def approve(
    run: RunArgument,
    call: CallArgument = None,
    by: ByOption = None,
    arguments: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--arguments",
            metavar="JSON",
            help="Arguments to call the tool with instead of the model's, a JSON object.",
            show_default=False,
        ),
    ] = None,
    db: DurableDatabaseOption = DURABLE_DATABASE,
) -> None:
    """Approve a call. When all calls of the run are answered, a worker continues it.

    Example: kantan-agents approvals approve RUN --by Mia --arguments '{"amount": 20}'

    Exit codes: 0 approved, 1 no such call waits, 2 bad arguments, or the
    database cannot be used.
    """
    from kantan_agents.cli.approvals.approve_reject import approve_call

    approve_call(db, run, call, by=author(by), arguments=arguments)


@app.command()
def reject(
    run: RunArgument,
    call: CallArgument = None,
    by: ByOption = None,
    reason: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--reason",
            metavar="TEXT",
            help="The result of the call for the model.",
            show_default=False,
        ),
    ] = None,
    db: DurableDatabaseOption = DURABLE_DATABASE,
) -> None:
    """Reject a call. The model gets the reason as its result, and the run continues.

    Exit codes: 0 rejected, 1 no such call waits, 2 the database cannot be used.
    """
    from kantan_agents.cli.approvals.approve_reject import reject_call

    reject_call(db, run, call, by=author(by), reason=reason)
