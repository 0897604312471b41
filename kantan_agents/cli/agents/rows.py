"""Agents as rows and as JSON data, for ``agents list`` and ``search``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, wide_terminal
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.definitions import AgentCatalog, AgentDefinition

_LONGEST_NAME = 40
_COLUMNS = (
    Column("name", longest=_LONGEST_NAME, aligned=_LONGEST_NAME),
    Column("scope"),
    Column("model", longest=24, named=True),
    Column("description", own_line=True, rest=True),
)


def print_agents(catalog: AgentCatalog, definitions: Iterable[AgentDefinition]) -> None:
    """Print some agents of a catalog, a row each."""
    console = wide_terminal()
    rows = [_row(catalog, definition) for definition in definitions]
    print_lines(console, row_lines(_COLUMNS, rows, line_width(console)))


def agent_data(catalog: AgentCatalog, definition: AgentDefinition) -> dict[str, Any]:
    """Return what is known of an agent as JSON data, without its prompt."""
    details = catalog.details(definition.name)
    del details["system_prompt"]
    return details


def _row(catalog: AgentCatalog, definition: AgentDefinition) -> list[Text]:
    first_line = definition.description.strip().splitlines()[0]
    return [
        cell(definition.name, ACCENT),
        cell(catalog.scope_of(definition)),
        cell(definition.model or ""),
        cell(first_line),
    ]
