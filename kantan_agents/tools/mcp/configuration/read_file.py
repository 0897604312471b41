"""Reads one configuration file."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from kantan_agents.errors import InvalidMCPConfigurationError, MCPFileError
from kantan_agents.support.nearest import nearest
from kantan_agents.tools.mcp.configuration.entry import ServerEntry, ServerSource
from kantan_agents.tools.mcp.configuration.parse import parse_servers

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MOST_BYTES = 1_048_576
_JSON_SERVERS = "mcpServers"
_INPUTS = "inputs"
_REPEATED = ": appears several times"
_OF_TOML = frozenset({"servers", "allow_env"})


@attrs.frozen
class ConfigurationFile:
    """A file's servers; only the user's own has ``allow_env``."""

    source: ServerSource
    entries: tuple[ServerEntry, ...] = ()
    allow_env: frozenset[str] = frozenset()


def read_file(path: Path, *, is_own: bool = False) -> ConfigurationFile:
    """Read TOML if the name ends with ``.toml``, otherwise JSON; E180, E181 for mistakes outside servers."""
    content = _content(path)
    real = Path(os.path.realpath(path))
    source = ServerSource(real, digest_of(content), is_own, real.parent, is_of_user=is_own)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MCPFileError(path=str(path), reason="it is not UTF-8 text") from error
    if path.suffix == ".toml":
        file, problems = _from_toml(_parsed_toml(text, path), source)
    else:
        file, problems = _from_json(_parsed_json(text, path), source)
    if problems:
        problems += [mistake for entry in file.entries for mistake in entry.mistakes]
        raise InvalidMCPConfigurationError(path=str(path), problems=problems)
    return file


def digest_of(content: bytes) -> str:
    """Return the SHA-256."""
    return hashlib.sha256(content).hexdigest()


def _content(path: Path) -> bytes:
    try:
        # Do not wait for a pipe without a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:  # noqa: PTH123 - the file is open already
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise MCPFileError(path=str(path), reason="it is not a regular file")
            content = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, MCPFileError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise MCPFileError(path=str(path), reason=reason) from error
    if len(content) > _MOST_BYTES:
        raise MCPFileError(path=str(path), reason=f"it is larger than {_MOST_BYTES} bytes")
    return content


class _Object(dict[str, Any]):
    """Records repeated keys."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs) if len(self) < len(pairs) else {}
        self.repeated = [key for key, count in counts.items() if count > 1]


def _parsed_json(text: str, path: Path) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_Object)
    except (ValueError, RecursionError) as error:
        # The position only: the message may quote the file.
        at = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise MCPFileError(path=str(path), reason=f"it is not JSON{at}") from error


def _from_json(data: Any, source: ServerSource) -> tuple[ConfigurationFile, list[str]]:
    if not isinstance(data, _Object):
        return ConfigurationFile(source), [f"must be an object with {_JSON_SERVERS}"]
    problems = [f"{key}{_REPEATED}" for key in data.repeated]
    for key in data:
        if key not in (_JSON_SERVERS, _INPUTS, "$schema"):
            near = nearest(key, [_JSON_SERVERS])
            problems.append(f"{key}: is not known{f'; the nearest key is {near!r}' if near else ''}")
    if _JSON_SERVERS not in data:
        return ConfigurationFile(source), [*problems, f"{_JSON_SERVERS}: is missing"]
    servers = data[_JSON_SERVERS]
    parsed = parse_servers(servers, source, _JSON_SERVERS)
    problems += [] if parsed.fault is None else [parsed.fault]
    # VS Code prompts for values there; `${input:...}` in a server refers to them.
    remarks = (
        (f"{_INPUTS}: has no effect: nobody is asked; write ${{NAME}} for a variable",)
        if _INPUTS in data
        else ()
    )
    entries = tuple(
        attrs.evolve(
            entry,
            mistakes=(*entry.mistakes, *_repeated(entry.name, servers)),
            remarks=(*entry.remarks, *remarks),
        )
        for entry in parsed.entries
    )
    return ConfigurationFile(source, entries), problems


def _repeated(name: str, servers: _Object) -> Iterator[str]:
    # A reader may have seen the first of two, and programs use the last.
    place, options = f"{_JSON_SERVERS}.{name}", servers[name]
    if name in servers.repeated:
        yield f"{place}{_REPEATED}"
    if isinstance(options, _Object):
        yield from (f"{place}.{key}{_REPEATED}" for key in options.repeated)
        for outer, inner in options.items():
            if isinstance(inner, _Object):
                yield from (f"{place}.{outer}.{key}{_REPEATED}" for key in inner.repeated)


def _parsed_toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise MCPFileError(path=str(path), reason=f"it is not TOML ({error})") from error


def _from_toml(data: Mapping[str, Any], source: ServerSource) -> tuple[ConfigurationFile, list[str]]:
    # The other tables belong to other parts of the library.
    table = data.get("mcp", {})
    if not isinstance(table, Mapping):
        return ConfigurationFile(source), ["mcp: must be a table"]
    problems = []
    for key in table:
        if key not in _OF_TOML:
            near = nearest(key, _OF_TOML)
            problems.append(f"mcp.{key}: is not known{f'; the nearest key is {near!r}' if near else ''}")
    names = table.get("allow_env", [])
    if "allow_env" in table and not source.is_own:
        problems.append("mcp.allow_env: counts only in your own configuration, not in that of a project")
    elif not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        problems.append("mcp.allow_env: must be a list of names of variables")
        names = []
    parsed = parse_servers(table.get("servers", {}), source, "mcp.servers")
    problems += [] if parsed.fault is None else [parsed.fault]
    return ConfigurationFile(source, parsed.entries, frozenset(names)), problems
