"""``kantan-agents mcp trust``, and the question before a server of a new file is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer

from kantan_agents.cli.terminal.plain import one_line, printable
from kantan_agents.errors import InvalidOptionError
from kantan_agents.subagent_files import AgentDefinition
from kantan_agents.tools.mcp.configuration.agent_file import source_of, wanted_servers
from kantan_agents.tools.mcp.configuration.configuration import Configuration
from kantan_agents.tools.mcp.configuration.entry import ServerEntry, ServerSource
from kantan_agents.tools.mcp.configuration.masking import shown_value
from kantan_agents.tools.mcp.configuration.places import is_own_file
from kantan_agents.tools.mcp.configuration.read_file import read_file
from kantan_agents.tools.mcp.configuration.trust import TrustRecord
from kantan_agents.tools.mcp.configuration.variables import variables_of


def trust_file(path: Path) -> None:
    """Record that the user trusts a file, and print what may be started now.

    Raises:
        MCPFileError: E180, the file cannot be read.
        InvalidMCPConfigurationError: E181, it has mistakes outside of its servers.
        AgentFileError, InvalidDefinitionError: E30, E31, the same for a subagent file.
        MCPTrustRecordError: E185, the trust cannot be recorded.
        InvalidOptionError: E75, a subagent file configures no server.
    """
    source, entries = _read(path)
    for line in described(entries):
        typer.echo(line)
    if source.is_own:
        typer.echo(f"{one_line(str(source.path))} is your own; it needs no trust")
        return
    TrustRecord.of_user().trust(source)
    typer.echo(f"trusted: {one_line(str(source.path))}")


def forget_file(path: Path) -> None:
    """Forget that the user trusts a file, which may not exist any longer.

    Raises:
        MCPTrustRecordError: E185, the record cannot be changed.
    """
    real = Path(os.path.realpath(path))
    was_trusted = TrustRecord.of_user().forget(real)
    typer.echo(f"{'no longer trusted' if was_trusted else 'was not trusted'}: {one_line(str(real))}")


def ask_for_trust(entries: Iterable[ServerEntry], configuration: Configuration) -> None:
    """In a terminal, ask about each file that is not trusted and configures one of the servers.

    If the answer is no, or there is no terminal, nothing is recorded.

    Args:
        entries: The servers that are to be started.
        configuration: All that are configured. Trust is for a file, so all servers of the file are shown.
    """
    if not sys.stdin or not sys.stdin.isatty() or not sys.stderr.isatty():
        return
    record = TrustRecord.of_user()
    wanted = list(entries)
    configured = (*configuration.entries, *configuration.shadowed)
    for source in dict.fromkeys(entry.source for entry in wanted):
        # Those that a subagent file configures itself are wanted, all of them.
        of_file = [one for one in configured if one.source == source]
        of_file = of_file or [one for one in wanted if one.source == source]
        reason = record.distrust(source)
        if reason is None:
            continue
        typer.echo(f"{one_line(str(source.path))} {reason}. It starts or connects to:", err=True)
        for line in described(of_file):
            typer.echo(line, err=True)
        if typer.confirm("Trust this file until it changes?", err=True):
            record.trust(source)


def described(entries: Iterable[ServerEntry]) -> Iterator[str]:
    """Yield lines about each server: what it starts or connects to, and with which variables and headers.

    Nothing is cut short: the end of a long command matters as much as its beginning.
    """
    for entry in entries:
        yield f"  {_whole_line(f'{entry.name}: {entry.shown}')}"
        yield from (f"    {_whole_line(one)}" for one in (*entry.mistakes, *entry.remarks))
        details = {
            "cwd": entry.cwd or "",
            "env": " ".join(f"{name}={shown_value(name, value)}" for name, value in entry.env.items()),
            "headers": ", ".join(entry.headers),
            "reads": ", ".join(variables_of(entry)),
        }
        yield from (f"    {_whole_line(f'{label}: {text}')}" for label, text in details.items() if text)


def _whole_line(text: str) -> str:
    return printable(text.replace("\n", "\\n").replace("\t", " "))


def _read(path: Path) -> tuple[ServerSource, tuple[ServerEntry, ...]]:
    if path.suffix == ".md":
        definition = AgentDefinition.load(path)
        entries = wanted_servers(definition).entries
        if not entries:
            reason = f"{path} configures no MCP server itself, so it needs no trust"
            raise InvalidOptionError(option="FILE", reason=reason)
        return source_of(definition), entries
    file = read_file(path, is_own=is_own_file(path))
    return file.source, file.entries
