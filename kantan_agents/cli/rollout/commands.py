"""The group ``kantan-agents rollout``."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.author import author
from kantan_agents.cli.terminal.database import DATABASE, DatabaseOption
from kantan_agents.cli.terminal.grouped import grouped
from kantan_agents.cli.terminal.new_app import new_group
from kantan_agents.cli.terminal.output_options import AS_TABLE, FormOptions, JsonOption
from kantan_agents.errors import InvalidOptionError

app = new_group()

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The rollout, or an agent: then its latest rollout.")
]
ByOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--by",
        metavar="WHO",
        help="Who decides, for the history. Default: the name of the user.",
        show_default=False,
    ),
]
ReasonOption = Annotated[
    str,
    typer.Option("--reason", metavar="TEXT", help="Why, for the history.", show_default=False),
]


@app.command()
@grouped
def status(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            metavar="[NAME]",
            help="The rollout, or an agent: then its latest rollout. Without it, all are listed.",
            show_default=False,
        ),
    ] = None,
    db: DatabaseOption = DATABASE,
    form: FormOptions = AS_TABLE,
) -> None:
    """Show the status of a rollout: the metrics of each arm, the guards, the verdict.

    Look as often as you like: the tests allow it.

    Exit codes: 0 shown, 1 the database has no rollout of this name, or cannot
    be read.
    """
    if name is None:
        from kantan_agents.cli.rollout.list_rollouts import list_rollouts

        if form.as_csv or form.as_markdown:
            option = "--csv" if form.as_csv else "--markdown"
            raise InvalidOptionError(option=option, reason="needs the NAME of a rollout")
        list_rollouts(db, as_json=form.as_json)
    else:
        from kantan_agents.cli.rollout.show_status import show_status

        show_status(db, name, form)


@app.command()
def promote(
    name: NameArgument,
    arm: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--arm",
            metavar="ARM",
            help="Give everyone this arm now. Without it: the next step of the ramp.",
            show_default=False,
        ),
    ] = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    expect_step: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--expect-step",
            metavar="STEP",
            help="Promote only from this step, from 0, so that two operators take one step.",
            show_default=False,
        ),
    ] = None,
    db: DatabaseOption = DATABASE,
    as_json: JsonOption = False,
) -> None:
    """Give the new arms the next share of the ramp; at its end, everyone gets the new arm.

    Every process that shares the database follows within a second.

    Example: kantan-agents rollout promote support --reason "two quiet days"

    Exit codes: 0 promoted, 1 the rollout is over, at another step, or cannot
    be found or changed.
    """
    from kantan_agents.cli.rollout.steer import promote_rollout

    promote_rollout(db, name, arm=arm, by=author(by), reason=reason, expect_step=expect_step, as_json=as_json)


@app.command()
def stop(
    name: NameArgument,
    by: ByOption = None,
    reason: ReasonOption = "",
    db: DatabaseOption = DATABASE,
    as_json: JsonOption = False,
) -> None:
    """Give everyone the control again, even after a promotion.

    Every process that shares the database follows within a second.

    Exit codes: 0 stopped, 1 the rollout is stopped already, or cannot be found
    or changed.
    """
    from kantan_agents.cli.rollout.steer import stop_rollout

    stop_rollout(db, name, by=author(by), reason=reason, as_json=as_json)


@app.command()
def history(name: NameArgument, db: DatabaseOption = DATABASE, as_json: JsonOption = False) -> None:
    """Show who has changed a rollout, when and why; with --json, with the evidence.

    Exit codes: 0 shown, 1 the database has no rollout of this name, or cannot
    be read.
    """
    from kantan_agents.cli.rollout.show_history import show_history

    show_history(db, name, as_json=as_json)
