"""Protected paths: files that determine which code runs in a folder, or what tools may do.

A tool changes one only if a person has agreed to exactly that file; a command in a sandbox never can.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import attrs

from kantan_agents.tools.mcp.configuration.config_directory import config_directory
from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.registry import recorders

AGENTS: Final = "it decides what agents read and may do"
SERVERS: Final = "it decides which programs are started, and which tools there are"
GIT: Final = "git runs what it names"
PYTHON: Final = "Python runs it at its next start"
SHELL: Final = "a shell runs it at its next start"
BUILD: Final = "another program runs what it names"
COMMANDS: Final = "a program that is started by its name is found there"
TRACES: Final = "it records what agents have done"

_BESIDE_DATABASES: Final = ("-wal", "-shm", "-journal", ".key")


@attrs.frozen
class ProtectedName:
    """A protected file or folder, anywhere below the root.

    ``pattern`` has its last path parts in lower case. With ``in_sandbox``, it is read-only in a sandbox;
    programs must write the others: ``git`` its index, ``npm`` the installed packages.
    """

    pattern: str
    reason: str
    in_sandbox: bool = True


PROTECTED: Final = (
    *(ProtectedName(name, AGENTS) for name in (".claude", ".kode", ".codex", ".agents", ".claude.json")),
    *(ProtectedName(name, SERVERS) for name in (".mcp.json", "kantan-agents.toml", ".config/kantan_agents")),
    # All of it asks; in a sandbox only the parts that name programs are read-only.
    ProtectedName(".git", GIT, in_sandbox=False),
    *(
        ProtectedName(name, GIT)
        for name in (
            ".git/config",
            ".git/config.worktree",
            ".git/hooks",
            ".git/info/attributes",
            ".git/modules/*/config",
            ".git/modules/*/hooks",
            ".git/worktrees/*/config.worktree",
            ".gitconfig",
            ".config/git",
            ".husky",
            ".githooks",
        )
    ),
    ProtectedName(".gitmodules", GIT, in_sandbox=False),
    *(ProtectedName(name, PYTHON) for name in (".venv", "venv", "sitecustomize.py", "usercustomize.py")),
    *(ProtectedName(name, PYTHON) for name in ("*.pth", "pyvenv.cfg", ".pdbrc")),
    *(
        ProtectedName(name, SHELL)
        for name in (
            *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
            *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc"),
            *(".login", ".logout", ".inputrc", ".envrc", ".direnv", ".config/fish", ".xprofile", ".xinitrc"),
            *(".config/systemd", ".config/autostart", "library/launchagents", ".local/bin"),
        )
    ),
    *(ProtectedName(name, BUILD) for name in (".vscode", ".idea", ".cursor", ".devcontainer", ".ssh")),
    *(
        ProtectedName(name, BUILD)
        for name in (".npmrc", ".yarnrc.yml", ".pre-commit-config.yaml", ".gdbinit")
    ),
    ProtectedName("node_modules", BUILD, in_sandbox=False),
    *(
        ProtectedName(f"{name}{ending}", TRACES)
        for name in ("traces.sqlite3", "conversations.sqlite3", "durable.sqlite3")
        for ending in ("", *_BESIDE_DATABASES)
    ),
)

# macOS also finds a file by its name with these characters in it.
_IGNORED: Final = dict.fromkeys(
    (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)
)
_BETWEEN_WORDS: Final = re.compile(r"[\s'\"=:,;&|<>()]+")
_PAGE: Final = re.compile("https?://", re.IGNORECASE)
_LONGEST: Final = 4096
_ALIASES: Final = {"git~1": ".git"}  # how Windows spells it for old programs
_WHOLE: Final = {one.pattern: one.reason for one in PROTECTED if not set("*?/") & set(one.pattern)}
_OTHERS: Final = tuple(
    (tuple(one.pattern.split("/")), one.reason) for one in PROTECTED if set("*?/") & set(one.pattern)
)
_ENVIRONMENT: Final = ("pyvenv.cfg", "conda-meta")
_OF_ENVIRONMENTS: Final = ("bin", "lib", "lib64", "include", "scripts", *_ENVIRONMENT)
_REPOSITORY: Final = ("HEAD", "objects", "refs")  # a folder with these is one for git, also without `.git`
_also: Final[dict[str, str]] = {}


def why_protected(root: str, parts: tuple[str, ...]) -> str | None:
    """Return why a path is protected, or None. Costs some ``stat`` calls.

    File systems may ignore case, invisible characters and trailing blanks. ``root`` and ``parts`` contain no
    symbolic links.
    """
    named = _named(tuple(_folded(name) for name in parts))
    if named is None and ".git" in map(_folded, Path(root).parts):
        named = GIT
    return named or _found(root, parts)


def protect(path: str | os.PathLike[str], reason: str) -> None:
    """Protect a file or folder that this process uses, until the process ends."""
    _also[os.path.realpath(path)] = reason


def also_protected() -> tuple[str, ...]:
    """Return the paths passed to ``protect``."""
    return tuple(_also)


def databases() -> tuple[str, ...]:
    """Return the SQLite databases that this process writes, without links."""
    recorded = filter(None, (backend_of(one.path).file for one in recorders()))
    others = (path for path, reason in _also.items() if reason == TRACES)
    return (*map(os.path.realpath, recorded), *others)


def executed_here() -> tuple[str, ...]:
    """Return this process' Python environment and this library, unless they belong to the system."""
    return _executed()


@cache
def _executed() -> tuple[str, ...]:
    library = Path(__file__).parents[1]
    places = (sys.prefix, sys.exec_prefix, sys.base_prefix, os.path.dirname(sys.executable or ""), library)  # noqa: PTH120
    found = dict.fromkeys(os.path.realpath(place) for place in places if place)
    return tuple(place for place in found if place not in ("/", "/usr", "/usr/bin", "/usr/local"))


def names_protected(text: str) -> bool:
    """Return whether a word of a string may name a protected path."""
    words = _BETWEEN_WORDS.split(text)
    return any(_named(tuple(map(_folded, word.split("/")))) is not None for word in words)


def named_protected(values: Iterable[Any]) -> tuple[str, str] | None:
    """Return an argument that leads to a protected path, and why. May block.

    For tools with an unknown root: paths count unchanged and relative to the working directory.
    """
    waiting = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            why = next(filter(None, map(_why_led_to, _paths_of(value))), None)
            if why is not None:
                return value, why
        elif isinstance(value, Mapping):
            waiting += [*value.values(), *value]
        elif isinstance(value, Iterable):
            waiting += value
    return None


def _paths_of(text: str) -> Iterator[str]:
    if _PAGE.match(text) and ".." not in text:
        return
    forms = (one for given in (text, unquote(text)) for one in (given, given.replace("\\", "/")))
    for path in dict.fromkeys(map(os.path.normpath, forms)):
        if len(path) <= _LONGEST and "\n" not in path:
            yield path


def _why_led_to(path: str) -> str | None:
    why = _named(tuple(map(_folded, path.split("/"))))
    with suppress(OSError, ValueError):  # no working directory, or not a path
        working, real = os.path.realpath("."), os.path.realpath(path)
        if why is None and real != working:
            root = working if real.startswith(f"{working}/") else "/"
            return why_protected(root, tuple(real[len(root) :].strip("/").split("/")))
    return why


def command_folders() -> frozenset[str]:
    """Return the folders of ``PATH``, without links and without the working directory."""
    return _command_folders(os.environ.get("PATH", ""), os.path.abspath("."))  # noqa: PTH100 - a str


@cache
def _command_folders(path: str, working: str) -> frozenset[str]:
    places = (os.path.join(working, one) for one in path.split(os.pathsep) if one.strip("./"))  # noqa: PTH118
    return frozenset(map(os.path.realpath, places))


def _folded(name: str) -> str:
    plain = name.translate(_IGNORED).rstrip(". ").casefold() if name.strip(". ") else name
    return _ALIASES.get(plain, plain)


def _named(names: tuple[str, ...]) -> str | None:
    for place, name in enumerate(names):
        if name in _WHOLE:
            return _WHOLE[name]
        for pattern, reason in _OTHERS:
            end = names[max(0, place + 1 - len(pattern)) : place + 1]
            if len(end) == len(pattern) and all(map(fnmatchcase, end, pattern)):
                return reason
    return None


def _found(root: str, parts: tuple[str, ...]) -> str | None:
    file = os.path.join(root, *parts)  # noqa: PTH118 - names that are no text
    own = config_directory()
    places = [*_also.items(), *((place, PYTHON) for place in executed_here())]
    places += [] if own is None else [(os.path.realpath(own), SERVERS)]
    for place, reason in places:
        if f"{file}/".startswith(f"{place}/") and not f"{root}/".startswith(f"{place}/"):
            return reason
    if os.path.dirname(file) in command_folders():  # noqa: PTH120
        return COMMANDS
    base = file
    for ending in _BESIDE_DATABASES:
        base = base.removesuffix(ending)
    if base in databases():
        return TRACES
    for count, name in enumerate(parts):
        folder = os.path.join(root, *parts[:count])  # noqa: PTH118
        is_environment = any(os.path.lexists(f"{folder}/{mark}") for mark in _ENVIRONMENT)
        if is_environment and (count or name.casefold() in _OF_ENVIRONMENTS):
            return PYTHON
        if all(one == name or os.path.lexists(f"{folder}/{one}") for one in _REPOSITORY):
            return GIT
    return _found_in_configuration(root, file)


def _found_in_configuration(root: str, file: str) -> str | None:
    # Imported here: only files that nothing else protects need them.
    from kantan_agents.toolkit.named_files.programs import used_by_servers
    from kantan_agents.toolkit.named_files.repositories import repositories, used_by_git

    by_git = (place for one in repositories(root) for place in used_by_git(one))
    for reason, places in ((GIT, by_git), (SERVERS, used_by_servers(root))):
        for place in places:
            if f"{file}/".startswith((f"{place}/", f"{os.path.realpath(place)}/")):
                return reason
    return None
