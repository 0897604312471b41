"""The option ``--max-failed``."""

from __future__ import annotations

import math
from typing import Annotated

import attrs
import typer

from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.errors import InvalidOptionError

_OPTION = "--max-failed"

MaxFailedOption = Annotated[
    str,
    typer.Option(
        _OPTION,
        metavar="N|P%",
        help="Exit with code 1 if more runs than this have failed: a number, or a share such as 5%.",
    ),
]


@attrs.frozen
class MaxFailed:
    """A number of runs, or a share from 0 to 1."""

    shown: str
    number: int | None
    part: float = 0.0

    @classmethod
    def read(cls, given: str) -> MaxFailed:
        """Return the value of the option."""
        text = given.strip()
        try:
            part = float(text[:-1]) / 100 if text.endswith("%") else None
            number = int(text) if part is None else None
        except ValueError:
            part, number = math.nan, None
        if (number is None or number < 0) and (part is None or not 0 <= part <= 1):
            reason = (
                f"must be a number of runs, such as 0 or 3, or a part of them, such as 5%, not {given!r:.60}"
            )
            raise InvalidOptionError(option=_OPTION, reason=reason)
        return cls(text, number, part or 0.0)

    def check(self, failed: int, runs: int, first: str) -> None:
        """Exit with code 1 if too many runs failed."""
        most = self.part * runs if self.number is None else self.number
        if failed <= most + 1e-9:
            return
        text = f"{failed} of {counted(runs, 'run')} failed, and {_OPTION} is {self.shown}; the first: {first}"
        typer.echo(one_line(f"error: {text}"), err=True)
        raise typer.Exit(EXIT_FAILED)
