"""Options for the output of a command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any, Final, Optional

import attrs
import typer

from kantan_agents.errors import InvalidOptionError

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ListLimitOption = Annotated[
    Optional[int],  # noqa: UP045 - Typer reads it at run time, on Python 3.10 too
    typer.Option(
        "--limit", metavar="N", min=1, help="At most N. Default: 20, and all with --json.", show_default=False
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Let warnings count as errors.")]

_SHOWN = 20


def most_of(limit: int | None, *, as_json: bool) -> int | None:
    """Return how many entries to print: users see 20, but a program would take them for all."""
    return _SHOWN if limit is None and not as_json else limit


@attrs.frozen
class FormOptions:
    """The output form; a table by default."""

    as_json: JsonOption = False
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a comment on a pull request.")
    ] = False

    def __attrs_post_init__(self) -> None:
        """Check that at most one form is requested."""
        if self.as_json + self.as_csv + self.as_markdown > 1:
            option = "--csv" if self.as_csv else "--markdown"
            raise InvalidOptionError(option=option, reason="choose one of --json, --csv and --markdown")

    def print(self, found: Any, data: Callable[[], Any]) -> bool:
        """Print results in the requested form; False for a table."""
        from kantan_agents.cli.terminal.plain import json_text, printable

        if self.as_json:
            typer.echo(json_text(data(), default=str))
        elif self.as_markdown:
            typer.echo(printable(found.to_markdown()).encode("utf-8", "replace"), nl=False)
        elif self.as_csv:
            text = found.to_csv()
            shown = printable(text) if sys.stdout.isatty() else text
            typer.echo(shown.encode("utf-8", "replace"), nl=False)
        else:
            return False
        return True


AS_TABLE: Final = FormOptions()
"""A table, for users."""
