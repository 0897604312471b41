"""``kantan-agents agents fix``: rewrites invalid files as valid YAML, after showing the changes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer
from rich.text import Text

from kantan_agents.cli.agents.below import boundary_of
from kantan_agents.cli.agents.files import AgentFile, FoundPath, find_files, read_files
from kantan_agents.cli.agents.problems import path_text, problem_line
from kantan_agents.cli.agents.replace_file import check_replaceable, replace_file
from kantan_agents.cli.terminal.console import BAD, GOOD, LABEL, plain, wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.rows import print_lines
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.errors import AgentFileError, FileArgumentError, InvalidDefinitionError
from kantan_agents.subagent_files import AgentDefinition, Problem
from kantan_agents.subagent_files.fix import fixed_text
from kantan_agents.subagent_files.problems import unreadable

_STYLES = {"+": GOOD, "-": BAD, "@": LABEL}


def fix_agents(paths: Sequence[Path], *, dry_run: bool) -> None:
    """Print the changes that turn invalid files into valid YAML; write them unless ``dry_run``.

    The changes go to stdout, the results to stderr.

    Raises:
        FileArgumentError: E79, a path does not exist.
        Exit: With code 1, a file cannot be read or fixed.
    """
    found = find_files(paths)
    problems, fixed, count = list(found.problems), 0, 0
    # Each file is read just before it is fixed: if two paths lead to one file, the second is fixed already.
    # Files behind links come last, because they are not written.
    for file in read_files(sorted(found.files, key=_is_behind_a_link)):
        if not file.is_agent:
            continue
        count += 1
        failures = file.errors or _fix(file, dry_run=dry_run)
        problems += failures
        fixed += not failures and file.definition is not None and file.definition.is_repaired
    for problem in problems:
        typer.echo(problem_line(problem).plain, err=True)
    errors = f", {counted(len(problems), 'error')}" if problems else ""
    typer.echo(f"{counted(count, 'file')}, {fixed} {'to fix' if dry_run else 'fixed'}{errors}", err=True)
    if problems:
        raise typer.Exit(EXIT_FAILED)


def _fix(file: AgentFile, *, dry_run: bool) -> tuple[Problem, ...]:
    """Show and write the changes to one file; return the reasons if that is impossible."""
    if file.definition is None or not file.definition.is_repaired:
        return ()
    text = _fixed_text(file)
    if text is None:
        return (_unfixable(file.path, file.definition.repairs),)
    boundary = boundary_of(file.tree)
    try:
        check_replaceable(file.path, boundary=boundary)
        print_lines(wide_terminal(), _changes(file, text))
        if dry_run:
            return ()
        replace_file(file.path, file.data, text.encode(), boundary=boundary)
    except FileArgumentError as error:
        return (unreadable(str(file.path), f"cannot be fixed: {error.reason}"),)
    typer.echo(f"fixed {path_text(file.path)}", err=True)
    return ()


def _is_behind_a_link(found: FoundPath) -> bool:
    try:
        check_replaceable(found.path, boundary=boundary_of(found.tree))
    except FileArgumentError:
        return True
    return False


def _unfixable(path: Path, repairs: Sequence[Problem]) -> Problem:
    """Return the problem of a file that cannot be rewritten without changing its meaning."""
    places = "; ".join(f"line {repair.line}: {repair.message}" for repair in repairs)
    message = f"cannot be fixed: no valid YAML has the same meaning ({places})"
    return Problem(path, repairs[0].line, message, "error", AgentFileError.code)


def _fixed_text(file: AgentFile) -> str | None:
    """Return a repaired file as valid YAML; None unless its definition stays the same."""
    text = fixed_text(file.data.decode())
    if text is None:
        return None
    try:
        definition = AgentDefinition.loads(text.encode(), path=file.path)
    except (AgentFileError, InvalidDefinitionError):
        return None
    return text if definition == file.definition and not definition.is_repaired else None


def _changes(file: AgentFile, text: str) -> Iterator[Text]:
    name = path_text(file.path)
    before, after = (_lines(part) for part in (file.data.decode(), text))
    for line in difflib.unified_diff(before, after, name, name, lineterm=""):
        is_head = line.startswith(("---", "+++")) and line[4:] == name
        yield plain(line, LABEL if is_head else _STYLES.get(line[0], ""))


def _lines(text: str) -> list[str]:
    # Not splitlines, which splits at more characters than diff does.
    *lines, last = text.split("\n")
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines
