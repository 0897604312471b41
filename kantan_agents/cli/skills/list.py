"""``skills list``: prints skills and commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from rich.text import Text

from kantan_agents.cli.agents.problems import counts_text, errors_in, path_text, problem_data
from kantan_agents.cli.terminal.console import ACCENT, plain, wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import Column, line_width, print_lines, row_lines
from kantan_agents.tools.skills import CommandFile, CommandLoader, Skill, SkillLoader

_COLUMNS = (
    Column("name", longest=64, aligned=40),
    Column("kind"),
    Column("description", own_line=True, rest=True),
)


def list_skills(*, as_json: bool) -> None:
    """Print the skills found here."""
    skill_loader, command_loader = SkillLoader(), CommandLoader()
    skills, commands = skill_loader.load_skills_now(), command_loader.load_commands_now()
    problems = [*skills.problems, *commands.problems]
    if as_json:
        data = {
            "skills": [{**skill.to_dict(), "path": str(skill.path)} for skill in skills],
            "commands": [_command_data(command) for command in commands],
            "problems": [problem_data(problem) for problem in problems],
        }
        for skill in data["skills"]:
            del skill["body"]
        typer.echo(json_text(data, default=str))
    elif skills or commands:
        console = wide_terminal()
        rows = [*map(_row, skills), *map(_row, commands)]
        print_lines(console, row_lines(_COLUMNS, rows, line_width(console)))
    else:
        places = [*skill_loader.directories, *command_loader.directories]
        typer.echo("No skills and no commands. Directories that are searched:")
        print_lines(wide_terminal(), (plain(f"  {path_text(place.path)}") for place in places))
    if problems and not as_json:
        typer.echo(f"{counts_text(problems)}; see kantan-agents skills validate", err=True)
    if errors_in(problems):
        raise typer.Exit(EXIT_FAILED)


def _row(entry: Skill | CommandFile) -> list[Text]:
    is_skill = isinstance(entry, Skill)
    description = entry.description if isinstance(entry, Skill) else entry.summary
    name = entry.name if is_skill else f"/{entry.name}"
    kind = "skill" if is_skill else "command"
    return [plain(one_line(name), ACCENT), plain(kind), plain(one_line(_limited(entry, description)))]


def _limited(entry: Skill | CommandFile, description: str) -> str:
    if entry.allowed_tools == "*":
        return description
    return f"{description} (tools: {', '.join(entry.allowed_tools) or 'none'})"


def _command_data(command: CommandFile) -> dict[str, Any]:
    return dict(_fields_of(command))


def _fields_of(command: CommandFile) -> Iterator[tuple[str, Any]]:
    for field in ("name", "argument_hint", "model"):
        yield field, getattr(command, field)
    yield "description", command.summary
    allowed = command.allowed_tools
    yield "allowed_tools", allowed if isinstance(allowed, str) else list(allowed)
    yield "disallowed_tools", list(command.disallowed_tools)
    yield "path", str(command.path)
