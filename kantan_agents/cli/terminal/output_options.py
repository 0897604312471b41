"""Options about what a command prints and writes."""

from __future__ import annotations

from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Let warnings count as errors.")]
