"""The group ``kantan-agents replay``."""

from __future__ import annotations

from typing import Any

import typer

from kantan_agents.cli.replay.cohort import cohort
from kantan_agents.cli.replay.recordings import recordings
from kantan_agents.cli.terminal.new_app import Group, new_app

_CHANGE = "--change"


class _ByArguments(Group):
    """A group whose command may be left out: a change means a cohort, anything else recordings in files."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the command, if it was left out."""
        if args and args[0] not in (*self.commands, "--help"):
            is_cohort = any(one.partition("=")[0] == _CHANGE for one in args)
            args = ["cohort" if is_cohort else "recordings", *args]
        return super().parse_args(ctx, args)


app = new_app(cls=_ByArguments)


@app.callback(invoke_without_command=True)
def replay(context: typer.Context) -> None:
    """Run recorded runs again: recordings in files as a test, or a cohort with something changed."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("recordings")(recordings)
app.command("cohort")(cohort)
