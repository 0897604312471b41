"""``agents list`` and ``search``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import typer
from rich.text import Text

from kantan_agents.cli.agents.problems import errors_in, path_text, problem_data, problem_line
from kantan_agents.cli.terminal.console import ACCENT, LABEL, plain, wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.subagent_files import (
    AgentCatalog,
    AgentDefinition,
    AgentDirectory,
    AgentLoader,
    ShadowedAgent,
)

_BUILT_IN = "a built-in agent"
_MAX_NAME = 40
_COLUMNS = (
    Column("name", longest=_MAX_NAME, aligned=_MAX_NAME),
    Column("scope"),
    Column("model", longest=24, named=True),
    Column("description", own_line=True, rest=True),
)


def list_agents(*, show_all: bool, as_json: bool) -> None:
    """Print the agents found here."""
    loader = AgentLoader()
    catalog = loader.load_agents_now()
    if as_json:
        typer.echo(json_text(as_data(catalog), default=str))
    else:
        if catalog:
            _print_agents(catalog, catalog)
        else:
            print_lines(wide_terminal(), _no_agents(loader.directories))
        print_lines(wide_terminal(), _details(catalog) if show_all else _counts(catalog))
    if errors_in(catalog.problems):
        raise typer.Exit(EXIT_FAILED)


def search_agents(text: str, *, as_json: bool) -> None:
    """Print agents with every word, best match first."""
    catalog = AgentLoader().load_agents_now()
    found = catalog.search(text)
    if as_json:
        typer.echo(json_text([_agent_data(catalog, definition) for definition in found], default=str))
    elif found:
        _print_agents(catalog, found)
    else:
        typer.echo("No agent found.")
    if not found:
        raise typer.Exit(EXIT_FAILED)


def as_data(catalog: AgentCatalog) -> dict[str, Any]:
    """Return a catalog as JSON data."""
    return {
        "agents": [_agent_data(catalog, definition) for definition in catalog],
        "problems": [problem_data(problem) for problem in catalog.problems],
        "shadowed": [
            {
                "name": shadowed.name,
                "path": None if shadowed.path is None else str(shadowed.path),
                "by": None if shadowed.by is None else str(shadowed.by),
            }
            for shadowed in catalog.shadowed
        ],
        "repaired": [
            {
                "name": definition.name,
                "path": str(definition.path),
                "repairs": [str(repair) for repair in definition.repairs],
            }
            for definition in catalog.repaired
        ],
    }


def _agent_data(catalog: AgentCatalog, definition: AgentDefinition) -> dict[str, Any]:
    details = catalog.details(definition.name)
    del details["system_prompt"]
    return details


def _print_agents(catalog: AgentCatalog, definitions: Iterable[AgentDefinition]) -> None:
    console = wide_terminal()
    rows = [_row(catalog, definition) for definition in definitions]
    print_lines(console, row_lines(_COLUMNS, rows, line_width(console)))


def _row(catalog: AgentCatalog, definition: AgentDefinition) -> list[Text]:
    first_line = definition.description.strip().splitlines()[0]
    return [
        cell(definition.name, ACCENT),
        cell(catalog.scope_of(definition)),
        cell(definition.model or ""),
        cell(first_line),
    ]


def _no_agents(directories: tuple[AgentDirectory, ...]) -> Iterator[Text]:
    yield Text("There are no agents. They are looked for in:")
    yield from (plain(f"  {path_text(directory.path)}") for directory in directories)


def _counts(catalog: AgentCatalog) -> Iterator[Text]:
    errors = errors_in(catalog.problems)
    counts = [
        counted(errors, "error") if errors else "",
        f"{counted(len(catalog.repaired), 'file')} repaired" if catalog.repaired else "",
        f"{counted(len(catalog.shadowed), 'file')} shadowed" if catalog.shadowed else "",
    ]
    if any(counts):
        yield Text()
        yield Text(f"{', '.join(filter(None, counts))}; --all shows them", style=LABEL)


def _details(catalog: AgentCatalog) -> Iterator[Text]:
    sections = {
        "problems": [problem_line(problem) for problem in catalog.problems if not problem.is_repair],
        "repaired": [problem_line(problem) for problem in catalog.problems if problem.is_repair],
        "shadowed": [_shadowed(shadowed) for shadowed in catalog.shadowed],
    }
    for title, lines in sections.items():
        if lines:
            yield Text()
            yield Text(title, style=LABEL)
            yield from lines


def _shadowed(shadowed: ShadowedAgent) -> Text:
    path, by = (_BUILT_IN if path is None else path_text(path) for path in (shadowed.path, shadowed.by))
    return plain(f"{path}: {one_line(shadowed.name)} is shadowed by {by}")
