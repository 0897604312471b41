"""``eval diff``: compares two versions of a dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.output_options import JsonOption
from kantan_agents.cli.terminal.plain import json_text, one_line


def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The dataset before, a .jsonl or .csv file.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The dataset now.")],
    as_json: JsonOption = False,
) -> None:
    """Show which cases of a dataset were added, removed and changed.

    Cases are compared by their ids, and a changed case is shown with the
    names of its fields that differ.

    Exit codes: 0 no difference, 1 they differ, 2 a bad file.
    """
    from kantan_agents.lab.evaluation import Dataset

    before, after = Dataset.load(old), Dataset.load(new)
    found = before.diff(after)
    if as_json:
        typer.echo(json_text({"old": before.hash, "new": after.hash, **found.to_dict()}))
    else:
        for line in found.text.splitlines():
            typer.echo(one_line(line))
    if found:
        raise typer.Exit(EXIT_FAILED)
