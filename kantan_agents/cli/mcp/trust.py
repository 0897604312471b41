"""``mcp trust``, and the prompt before a new file's servers start."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from pathlib import Path

import typer

from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.errors import InvalidOptionError
from kantan_agents.subagent_files import AgentDefinition
from kantan_agents.support.invisible import by_code
from kantan_agents.tools.mcp.configuration.agent_file import source_of, wanted_servers
from kantan_agents.tools.mcp.configuration.configuration import Configuration
from kantan_agents.tools.mcp.configuration.entry import ServerEntry, ServerSource
from kantan_agents.tools.mcp.configuration.masking import shown_value
from kantan_agents.tools.mcp.configuration.places import is_own_file
from kantan_agents.tools.mcp.configuration.read_file import read_file
from kantan_agents.tools.mcp.configuration.trust import TrustRecord
from kantan_agents.tools.mcp.configuration.variables import variables_of

_MOST_LINES = 60
_MOST_CHARACTERS = 6_000


def trust_file(path: Path) -> None:
    """Trust a file, and print what may start now."""
    source, entries = _read(path)
    for line in described(entries):
        typer.echo(line)
    if source.is_own:
        typer.echo(f"{one_line(str(source.path))} is your own; it needs no trust")
        return
    TrustRecord.of_user().trust(source)
    typer.echo(f"trusted: {one_line(str(source.path))}")


def forget_file(path: Path) -> None:
    """Remove the record of a file, which may be gone."""
    real = Path(os.path.realpath(path))
    was_trusted = TrustRecord.of_user().forget(real)
    typer.echo(f"{'no longer trusted' if was_trusted else 'was not trusted'}: {one_line(str(real))}")


def ask_for_trust(
    entries: Iterable[ServerEntry],
    configuration: Configuration | None = None,
    others: Iterable[ServerEntry] = (),
    texts: Mapping[ServerSource, Sequence[str]] | None = None,
) -> None:
    """In a terminal, prompt once about all untrusted files of the folder, if one is needed now.

    Without a yes, nothing is recorded. An entry too long for a prompt is only named. All servers of a file
    are shown, since trust is for the file.
    """
    if not sys.stdin or not sys.stdin.isatty() or not sys.stderr.isatty():
        return
    record = TrustRecord.of_user()
    wanted, texts = list(entries), texts or {}
    configured = () if configuration is None else (*configuration.entries, *configuration.shadowed)
    known = (*wanted, *configured, *others)
    sources = dict.fromkeys((*texts, *(one.source for one in known)))
    reasons = {source: record.distrust(source) for source in sources}
    if all(reasons[source] is None for source in (*texts, *(entry.source for entry in wanted))):
        return
    asked: list[ServerSource] = []
    shown: list[str] = []
    for source, reason in reasons.items():
        if reason is None or (source.is_of_user and all(one.source != source for one in wanted)):
            continue
        of_file = [one for one in known if one.source == source]
        lines = list(described(one for number, one in enumerate(of_file) if one not in of_file[:number]))
        lines = [*texts.get(source, lines)]
        path = one_line(str(source.path))
        if len(shown + lines) > _MOST_LINES or sum(map(len, shown + lines)) > _MOST_CHARACTERS:
            hint = f"read it, then run: kantan-agents mcp trust {shlex.quote(path)}"
            typer.echo(f"{path} {reason}. It is too long to be shown in a question; {hint}", err=True)
            continue
        does = "instructs agents" if source in texts else "starts or connects to"
        typer.echo(f"{path} {reason}. It {does}:", err=True)
        for line in lines:
            typer.echo(line, err=True)
        asked.append(source)
        shown += lines
    if not asked:
        return
    them = "this file until it changes" if len(asked) == 1 else f"these {len(asked)} files until they change"
    if typer.confirm(f"Trust {them}?", err=True):
        for source in asked:
            record.trust(source)


def described(entries: Iterable[ServerEntry]) -> Iterator[str]:
    """Yield lines about each server: its command or URL, and its variables and headers.

    Values are masked only if the file is the user's own: an apparent secret may be a command. Nothing is
    shortened: the end of a long command matters too.
    """
    for entry in entries:
        is_own = entry.source.is_own
        values = partial(map, _assigned, repeat(is_own))
        yield f"  {_shown(f'{entry.name}: {entry.shown if is_own else _literal(entry)}')}"
        yield from (f"    {_shown(one)}" for one in (*entry.mistakes, *entry.remarks))
        details = {
            "cwd": entry.cwd or "",
            "env": " ".join(values(entry.env, entry.env.values())),
            "headers": " ".join(entry.headers if is_own else values(entry.headers, entry.headers.values())),
            "reads": ", ".join(variables_of(entry)),
        }
        yield from (f"    {label}: {_shown(text)}" for label, text in details.items() if text)


def _literal(entry: ServerEntry) -> str:
    if entry.mistakes:
        return entry.shown
    return entry.url if entry.transport != "stdio" else shlex.join((entry.command, *entry.args))


def _assigned(is_own: bool, name: str, value: str) -> str:
    return f"{name}={shown_value(name, value) if is_own else shlex.quote(value)}"


def _shown(text: str) -> str:
    return by_code(text.replace("\n", "\\n").replace("\t", "\\t"), strict=True)


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
