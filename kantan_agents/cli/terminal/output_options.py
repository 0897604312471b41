"""Options about what a command prints and writes."""

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
    """Return how many entries of a list are printed; None for all.

    A person sees the newest 20. A program that reads JSON would take 20 for all of them.
    """
    return _SHOWN if limit is None and not as_json else limit


@attrs.frozen
class FormOptions:
    """In which form a command prints its results; as a table by default."""

    as_json: JsonOption = False
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a comment on a pull request.")
    ] = False

    def __attrs_post_init__(self) -> None:
        """Check that one form at most is asked for.

        Raises:
            InvalidOptionError: E75, there are several.
        """
        if self.as_json + self.as_csv + self.as_markdown > 1:
            option = "--csv" if self.as_csv else "--markdown"
            raise InvalidOptionError(option=option, reason="choose one of --json, --csv and --markdown")

    def print(self, found: Any, data: Callable[[], Any]) -> bool:
        """Print results in the form that is asked for; return False if that is a table.

        Args:
            found: The results, with ``to_csv`` and ``to_markdown``.
            data: Makes the JSON data.
        """
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
"""As a table, for people."""
