"""``kantan-agents agents list``: the agents there are, and what was wrong, repaired or shadowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from rich.text import Text

from kantan_agents.cli.agents.problems import errors_in, path_text, problem_data, problem_line
from kantan_agents.cli.agents.rows import agent_data, print_agents
from kantan_agents.cli.terminal.console import LABEL, plain, wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import print_lines
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.definitions import AgentCatalog, AgentDirectory, AgentLoader, ShadowedAgent

_BUILT_IN = "a built-in agent"


def list_agents(*, show_all: bool, as_json: bool) -> None:
    """Print the agents of this project and its user.

    Raises:
        Exit: With code 1, some file cannot be loaded.
    """
    loader = AgentLoader()
    catalog = loader.load_agents_now()
    if as_json:
        typer.echo(json_text(as_data(catalog), default=str))
    else:
        if catalog:
            print_agents(catalog, catalog)
        else:
            print_lines(wide_terminal(), _nothing(loader.directories))
        print_lines(wide_terminal(), _remarks(catalog) if show_all else _counts(catalog))
    if errors_in(catalog.problems):
        raise typer.Exit(EXIT_FAILED)


def as_data(catalog: AgentCatalog) -> dict[str, Any]:
    """Return a catalog as JSON data."""
    return {
        "agents": [agent_data(catalog, definition) for definition in catalog],
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


def _nothing(directories: tuple[AgentDirectory, ...]) -> Iterator[Text]:
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


def _remarks(catalog: AgentCatalog) -> Iterator[Text]:
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
