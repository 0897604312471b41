"""``skills validate``: prints problems in skills and commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs
import typer

from kantan_agents.cli.agents.problems import counts_text, errors_in, problem_data, problem_line
from kantan_agents.cli.terminal.console import wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.rows import print_lines
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.errors import CommandFileError, FileArgumentError, InvalidSkillError, SkillFileError
from kantan_agents.subagent_files import Problem
from kantan_agents.subagent_files.problems import problems_of
from kantan_agents.tools.skills import CommandFile, CommandLoader, Skill, SkillLoader
from kantan_agents.tools.skills.skill import SKILL_FILE

_COMMANDS: Final = "commands"


@attrs.frozen
class _Checked:
    loaded: int
    problems: tuple[Problem, ...]


def validate_skills(paths: Sequence[Path], *, strict: bool, as_json: bool) -> None:
    """Print the problems, and a summary on stderr."""
    checked = [*map(_check, paths)] if paths else [_skills_in(None), _commands_in(None)]
    problems = list(dict.fromkeys(problem for one in checked for problem in one.problems))
    loaded = sum(one.loaded for one in checked)
    if as_json:
        errors = errors_in(problems)
        counts = {"loaded": loaded, "errors": errors, "warnings": len(problems) - errors}
        typer.echo(json_text({**counts, "problems": [problem_data(problem) for problem in problems]}))
    else:
        print_lines(wide_terminal(), map(problem_line, problems))
    typer.echo(f"{counted(loaded, 'file')} loaded, {counts_text(problems)}", err=True)
    if problems if strict else errors_in(problems):
        raise typer.Exit(EXIT_FAILED)


def _check(path: Path) -> _Checked:
    if not path.exists():
        raise FileArgumentError(path=str(path), reason="it does not exist")
    if path.is_dir():
        return _commands_in(path) if path.resolve().name == _COMMANDS else _skills_in(path)
    return _Checked(*_of_file(path))


def _of_file(path: Path) -> tuple[int, tuple[Problem, ...]]:
    try:
        is_skill = path.name.lower() == SKILL_FILE.lower()
        file = Skill.load(path) if is_skill else CommandFile.load(path)
    except (SkillFileError, InvalidSkillError, CommandFileError) as error:
        return 0, problems_of(str(path), error)
    return 1, (*_effects(file), *file.notes)


def _skills_in(path: Path | None) -> _Checked:
    catalog = SkillLoader(path).load_skills_now()
    return _Checked(len(catalog), (*catalog.problems, *_all_effects(catalog)))


def _commands_in(path: Path | None) -> _Checked:
    catalog = CommandLoader(path).load_commands_now()
    return _Checked(len(catalog), (*catalog.problems, *_all_effects(catalog)))


def _all_effects(files: Iterable[Skill | CommandFile]) -> Iterator[Problem]:
    for file in files:
        yield from _effects(file)


def _effects(file: Skill | CommandFile) -> Iterator[Problem]:
    if file.extra:
        yield Problem(file.path, 1, f"kept, no effect here: {', '.join(file.extra)}", "warning")
