"""Options about what a command prints and writes."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

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
