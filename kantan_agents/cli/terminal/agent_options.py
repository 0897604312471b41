"""What the commands that ask an agent have in common: the model, and which options exclude each other."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from kantan_agents.cli.terminal.database import is_named
from kantan_agents.errors import InvalidOptionError

INSTRUCTIONS = "You are a helpful assistant."

# Typer reads it at run time; older versions do not support `X | None` on Python 3.10.
ModelOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--model",
        metavar="NAME",
        help="Model name for kantan-llm, such as gpt-6.1-terra, gemini-2.5-pro or ollama/llama3.2.",
        show_default=False,
    ),
]
ProjectInstructionsOption = Annotated[
    str,
    typer.Option(
        "--project-instructions",
        metavar="ask|use|off",
        help="Whether an agent of a file, or with --tools, gets the nearest AGENTS.md or CLAUDE.md: only if "
        "you agree to it, without a question, or not.",
        show_default=False,
    ),
]


def check_agent_options(
    invocation: typer.Context, *, agent: str | None, instructions: str | None, no_record: bool
) -> None:
    """Check that ``--agent`` and ``--no-record`` are not combined with options that they exclude.

    Raises:
        InvalidOptionError: E75, they are.
    """
    if agent is not None and instructions is not None:
        raise InvalidOptionError(option="--agent", reason="cannot be combined with --instructions")
    if no_record and is_named(invocation):
        raise InvalidOptionError(option="--no-record", reason="cannot be combined with --db")
