"""Programs in a project that a configuration names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kantan_agents.errors import KantanAgentsError
from kantan_agents.toolkit.named_files.gitlinks import content_of

if TYPE_CHECKING:
    from kantan_agents.tools.mcp.configuration.entry import ServerEntry

_MOST_BYTES = 1_048_576  # as for a configuration of servers
_MOST_WORDS = 3_000
_MOST_PLACES = 20
_WORD = re.compile(r"""[^\s"'`=,;|&<>(){}\[\]]+""")
_SERVERS = (".mcp.json", "kantan-agents.toml")
_PROGRAMS = frozenset(
    (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".sh", ".rb", ".pl", ".php", ".lua", ".jar")
)
_NODE = frozenset(("node", "npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx", "tsx", "deno"))
_OF_NODE = ("node_modules", "package.json")


def used_by_servers(folder: str) -> Iterator[str]:
    """Yield the programs of a folder's MCP servers."""
    for name in _SERVERS:
        words = words_of(f"{folder}/{name}")
        if not words:
            continue
        yield from programs(folder, words)  # unchanged, for other readers of the file
        yield from _of_node(folder, words)
        # Imported here: few folders have servers.
        from kantan_agents.tools.mcp.configuration.read_file import read_file

        with suppress(KantanAgentsError):
            for entry in read_file(Path(folder, name)).entries:
                yield from used_by_server(entry)


def used_by_server(entry: ServerEntry) -> Iterator[str]:
    """Yield the programs of a server, in its directory or in one that it names."""
    from kantan_agents.tools.mcp.configuration.variables import expand

    expanded = expand(entry, os.environ)
    texts = (expanded.command, *expanded.args, *expanded.env.values())
    words = [word for text in texts for word in (text, *_WORD.findall(text)) if "\0" not in word]
    base = os.path.join(entry.source.folder or entry.source.path.parent, os.path.expanduser(entry.cwd or ""))
    # Also a missing one: its creator decides which program starts.
    missing = (text for text in (expanded.command, *expanded.args) if Path(text).suffix in _PROGRAMS)
    yield from (os.path.normpath(os.path.join(base, text)) for text in missing if "\0" not in text)
    named = (os.path.normpath(os.path.join(base, word)) for word in ("", *words[:_MOST_WORDS]))
    places = list(dict.fromkeys(filter(os.path.isdir, named)))
    yield from places[_MOST_PLACES:]  # all that is in them
    for place in places[:_MOST_PLACES]:
        yield from programs(place, words[:_MOST_WORDS])
        modules = (f"{place}/{word}.py" for word in dict.fromkeys(words[:_MOST_WORDS]) if word.isidentifier())
        yield from filter(os.path.isfile, modules)
        yield from _of_node(place, words)


def programs(folder: str, words: Iterable[str]) -> Iterator[str]:
    """Yield the programs in a folder that words of a configuration name."""
    for word in dict.fromkeys(words):
        path = os.path.normpath(os.path.join(folder, word))
        module = os.path.join(folder, *word.split("."))
        if os.path.isfile(path) and (Path(path).suffix in _PROGRAMS or os.access(path, os.X_OK)):
            yield path
        elif os.path.isfile(f"{path}/__main__.py"):
            yield f"{path}/__main__.py"
        elif module != path and os.path.isfile(f"{module}.py"):
            yield f"{module}.py"
        elif os.path.isfile(f"{module}/__init__.py"):
            yield module


def words_of(file: str) -> list[str]:
    """Return the words of a configuration, if readable."""
    return _WORD.findall(content_of(file, _MOST_BYTES).decode("utf-8", "replace"))


def _of_node(folder: str, words: Iterable[str]) -> Iterator[str]:
    if any(os.path.basename(word) in _NODE for word in words):
        yield from (f"{folder}/{name}" for name in _OF_NODE)
