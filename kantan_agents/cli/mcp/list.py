"""``mcp list``: prints servers without starting them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, LABEL, NOTICE, wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_USAGE
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.tools.mcp.configuration.configuration import Configuration, read_configuration
from kantan_agents.tools.mcp.configuration.entry import ServerEntry
from kantan_agents.tools.mcp.configuration.trust import TrustRecord
from kantan_agents.tools.mcp.configuration.variables import missing_variables

_NONE = """\
No MCP server is configured. Configure one in .mcp.json of the project:

{"mcpServers": {"docs": {"type": "http", "url": "https://mcp.example.com/mcp"}}}"""

_COLUMNS = (
    Column("name", longest=40, aligned=40),
    Column("type"),
    Column("state", longest=40, aligned=24),
    Column("file", longest=40, narrow=24, drop=1),
    Column("server", own_line=True, rest=True),
)


def list_servers(paths: Sequence[Path] | None, *, as_json: bool) -> None:
    """Print the configured servers; exit with 2 if one is invalid."""
    configuration = read_configuration(paths or None)
    record = TrustRecord.of_user()
    if as_json:
        typer.echo(json_text(as_data(configuration, record)))
    elif configuration.entries:
        console = wide_terminal()
        width = line_width(console)
        rows = [_row(entry, configuration, record) for entry in configuration.entries]
        print_lines(console, row_lines(_COLUMNS, rows, width))
        print_lines(console, _notes(configuration, record))
    else:
        typer.echo(_NONE)
    if any(entry.mistakes for entry in configuration.entries):
        raise typer.Exit(EXIT_USAGE)


def state_of(entry: ServerEntry, configuration: Configuration, record: TrustRecord) -> str:
    """Return ``ready``, or what prevents the start."""
    if entry.mistakes:
        return "has mistakes"
    if entry.is_disabled:
        return "disabled"
    if record.distrust(entry.source) is not None:
        return "not trusted"
    if missing_variables(entry, os.environ, configuration.allow_env):
        return "variables missing"
    return "ready"


def as_data(configuration: Configuration, record: TrustRecord) -> dict[str, Any]:
    """Return the configured servers as JSON data."""
    return {
        "servers": [_entry_data(entry, configuration, record) for entry in configuration.entries],
        "shadowed": [
            {"name": entry.name, "file": str(entry.source.path)} for entry in configuration.shadowed
        ],
        "files": [str(path) for path in configuration.paths],
    }


def _entry_data(entry: ServerEntry, configuration: Configuration, record: TrustRecord) -> dict[str, Any]:
    return {
        "name": entry.name,
        "type": entry.transport,
        "server": entry.shown,
        "file": str(entry.source.path),
        "is_own": entry.source.is_own,
        "is_trusted": record.distrust(entry.source) is None,
        "is_disabled": entry.is_disabled,
        "missing": list(missing_variables(entry, os.environ, configuration.allow_env)),
        "state": state_of(entry, configuration, record),
        "mistakes": list(entry.mistakes),
        "remarks": list(entry.remarks),
    }


def _row(entry: ServerEntry, configuration: Configuration, record: TrustRecord) -> list[Text]:
    state = state_of(entry, configuration, record)
    style = {"ready": GOOD, "disabled": LABEL, "not trusted": NOTICE}.get(state, BAD)
    return [
        cell(entry.name, ACCENT),
        cell(entry.transport),
        cell(state, style),
        cell(_short(entry.source.path)),
        cell(entry.shown),
    ]


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd().resolve()))
    except (OSError, ValueError):
        return str(path)


def _notes(configuration: Configuration, record: TrustRecord) -> Iterator[Text]:
    reasons = {entry.source.path: record.distrust(entry.source) for entry in configuration.entries}
    for path, reason in reasons.items():
        if reason is not None:
            yield cell(f"{path} {reason}; read it, then run: kantan-agents mcp trust {path}", NOTICE)
    for entry in configuration.entries:
        for one in missing_variables(entry, os.environ, configuration.allow_env):
            yield cell(f"{entry.name}: {one}", BAD)
    for path, remark in configuration.remarks:
        yield cell(f"{path}: {remark}", NOTICE)
    for entry in configuration.shadowed:
        used = configuration.find(entry.name)
        if used is not None:
            yield cell(f"{entry.name} of {entry.source.path} is not used; {used.source.path} has it", LABEL)
