"""Formats problems for editors and as JSON data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from kantan_agents.cli.terminal.console import BAD, NOTICE, plain
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.subagent_files import Problem

_STYLES = {"error": BAD, "warning": NOTICE}


def problem_line(problem: Problem) -> Text:
    """Return ``path:line: severity: message``, which editors turn into a link."""
    code = f" [{problem.code}]" if problem.code else ""
    return Text.assemble(
        plain(f"{path_text(problem.path)}:{problem.line}: "),
        (f"{problem.severity}:", _STYLES[problem.severity]),
        plain(f" {one_line(problem.message)}{code}"),
    )


def problem_data(problem: Problem) -> dict[str, Any]:
    """Return a problem as JSON data."""
    return {
        "path": None if problem.path is None else str(problem.path),
        "line": problem.line,
        "severity": problem.severity,
        "code": problem.code,
        "message": problem.message,
        "is_repair": problem.is_repair,
    }


def path_text(path: Path | None) -> str:
    """Return a path on one line, whatever its name."""
    # plain() removes control characters.
    return plain(" ".join(str(path).replace("\t", " ").splitlines())).plain


def errors_in(problems: Sequence[Problem]) -> int:
    """Return the number of errors."""
    return sum(problem.severity == "error" for problem in problems)


def counts_text(problems: Sequence[Problem]) -> str:
    """Return the counts in words."""
    errors = errors_in(problems)
    return f"{counted(errors, 'error')}, {counted(len(problems) - errors, 'warning')}"
