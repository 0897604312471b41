"""The commands of ``kantan-agents replay`` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kantan_agents.cli.replay.cohort import cohort
from kantan_agents.cli.terminal.new_app import Group, new_group
from kantan_agents.cli.terminal.output_options import JsonOption
from kantan_agents.errors import InvalidOptionError

_CHANGE = "--change"


class _ByArguments(Group):
    """A group with an optional command, chosen by the arguments: a change means a cohort."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the command if it is omitted."""
        if args and args[0] not in (*self.commands, "--help"):
            is_cohort = any(one.partition("=")[0] == _CHANGE for one in args)
            args = ["cohort" if is_cohort else "recordings", *args]
        return super().parse_args(ctx, args)


app = new_group(cls=_ByArguments)


@app.command()
def recordings(
    files: Annotated[
        Optional[list[Path]],  # noqa: UP045 - Typer reads it at run time, on Python 3.10 too
        typer.Argument(metavar="RECORDING...", help="Files that `traces save` or Recording.save wrote."),
    ] = None,
    agent: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--agent",
            metavar="MODULE:NAME",
            help="The agent, or a function that returns it; modules of the current directory are found.",
            show_default=False,
        ),
    ] = None,
    ignore: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--ignore",
            metavar="PART",
            help="A part that may differ, such as tools or settings.temperature; may be repeated.",
            show_default=False,
        ),
    ] = None,
    match: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--match",
            metavar="PART",
            help="A part that must be the same; with it, all others may differ. May be repeated.",
            show_default=False,
        ),
    ] = None,
    accept: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--accept",
            metavar="NAME",
            help="A hosted tool, such as web_search, or data of the provider, such as "
            "previous_response_id, whose recorded answers are used; may be repeated.",
            show_default=False,
        ),
    ] = None,
    update: Annotated[
        bool,
        typer.Option(
            "--update", help="Where a replay differs, run the agent for real and replace the recording."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Replay recorded runs with an agent: are its requests and answers still the same?

    Model answers and tool results come from the recordings. No request leaves
    the process and no tool runs, unless --update records a run again.

    Example: kantan-agents replay recordings tests/recordings/*.json --agent app.agents:support

    Exit codes: 0 all are the same or updated, 1 one differs or failed,
    2 bad arguments, or a recording that cannot be replayed.
    """
    if not files:
        raise InvalidOptionError(option="RECORDING", reason="name the file of a recording")
    if agent is None:
        reason = "name the agent to replay with, such as --agent app.agents:support"
        raise InvalidOptionError(option="--agent", reason=reason)

    from kantan_agents.cli.replay.replay import ReplayOptions, replay_recordings

    options = ReplayOptions(tuple(ignore or ()), match or None, tuple(accept or ()))
    replay_recordings(files, agent, options, update=update, as_json=as_json)


app.command("cohort")(cohort)
