"""``kantan-agents tools check``: all mistakes in a file of tool rules."""

from __future__ import annotations

import typer

from kantan_agents.cli.terminal.failures import exit_code
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.tools.rules_file import read_rules
from kantan_agents.errors import InvalidToolRulesError


def check_rules(file: str) -> None:
    """Print the mistakes in ``file``, or that there are none.

    Raises:
        FileArgumentError: E79, the file cannot be read or holds no JSON object.
        Exit: With code 2, there are mistakes.
    """
    try:
        read_rules(file)
    except InvalidToolRulesError as error:
        for problem in error.problems:
            typer.echo(one_line(problem))
        raise typer.Exit(exit_code(error)) from error
    typer.echo(f"{one_line(file)}: no mistakes")
