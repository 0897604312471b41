"""``agents validate``: prints problems in subagent files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import typer

from kantan_agents.cli.agents.files import AgentFile, FoundFiles, find_files, read_files
from kantan_agents.cli.agents.problems import counts_text, errors_in, path_text, problem_data, problem_line
from kantan_agents.cli.agents.skills_here import SkillsHere
from kantan_agents.cli.agents.tools_here import ToolsHere
from kantan_agents.cli.terminal.console import wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.rows import print_lines
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.subagent_files import AgentDefinition, Problem, name_key
from kantan_agents.subagent_files.loading.agents import warnings_of
from kantan_agents.subagent_files.remarks import remarks_of
from kantan_agents.subagent_files.tool_lists import split_text


def validate_agents(
    paths: Sequence[Path],
    *,
    strict: bool,
    as_json: bool,
    tools: str | None = None,
    skills: Path | None = None,
) -> None:
    """Print the problems, and a summary on stderr."""
    found = find_files(paths)
    files = list(read_files(found.files))
    here = ToolsHere(() if tools is None else split_text(tools))
    problems = [*found.problems, *problems_in(files, here, SkillsHere(skills))]
    if as_json:
        errors = errors_in(problems)
        counts = {"files": len(files), "errors": errors, "warnings": len(problems) - errors}
        typer.echo(json_text({**counts, "problems": [problem_data(problem) for problem in problems]}))
    else:
        print_lines(wide_terminal(), map(problem_line, problems))
    typer.echo(_summary(found, files, problems), err=True)
    if problems if strict else errors_in(problems):
        raise typer.Exit(EXIT_FAILED)


def problems_in(files: Iterable[AgentFile], here: ToolsHere, skills: SkillsHere) -> Iterator[Problem]:
    """Yield the problems by file and line."""
    named: dict[tuple[Path, str], AgentFile] = {}
    for file in files:
        problems = list(file.errors)
        definition = file.definition
        if definition is not None:
            problems += warnings_of(definition)
            unknown = (here.remark_on(definition), skills.remark_on(definition, file.tree))
            remarks = [*remarks_of(definition), *filter(None, unknown)]
            problems += [
                Problem(file.path, file.line_of(remark.key), remark.message, "warning") for remark in remarks
            ]
            first = named.setdefault((file.tree, name_key(definition.name)), file)
            if first is not file:
                problems.append(_duplicate_name(file, definition, first))
        yield from sorted(problems, key=lambda problem: problem.line)


def _duplicate_name(file: AgentFile, definition: AgentDefinition, first: AgentFile) -> Problem:
    message = f"name: {path_text(first.path)} also has the name {definition.name}, and is the one used"
    return Problem(file.path, file.line_of("name"), message, "warning")


def _summary(found: FoundFiles, files: Sequence[AgentFile], problems: Sequence[Problem]) -> str:
    if not files and not problems:
        places = ", ".join(map(path_text, found.directories))
        return f"no agent files found in {places}"
    return f"{counted(len(files), 'file')}, {counts_text(problems)}"
