"""The entry form ``Tool(param pattern)`` in allow and deny: some calls of a tool instead of all.

``Bash(git:*)`` matches every call whose first word is ``git``. An entry that only looks like a pattern is an
error, because it would silently match nothing.

``Read(src/**)``, ``Read(path:notes.txt)`` and ``WebFetch(domain:example.com)`` match paths and hosts. If the
tool does not declare the kind of its parameter, such an entry covers every call in deny and none in allow.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, Final, TypeVar

import attrs

from kantan_agents.tool_rules.commands import Reading, readings, without_quotes
from kantan_agents.tool_rules.paths_and_hosts import (
    DOMAIN_PREFIX,
    check_path,
    check_path_pattern,
    checked_domain,
    denies_domain,
    denies_path,
    grants_domain,
    grants_path,
    is_path_pattern,
    is_rooted,
)
from kantan_agents.tool_rules.wrappers import SEPARATOR

_FORM = re.compile(r"(?P<tool>[^()]+)\((?P<argument>.*)\)", re.DOTALL)
_ANY = "*"
_PREFIX = ":*"
_ANY_PATH = "**"

# Characters that chain, redirect or nest commands in sh, bash, zsh, fish, PowerShell or cmd. They count
# within quotes too, because the shell is unknown.
_CHAINS = re.compile(r"[;&|<>`\r\n()]")
_EXPANSION = "${"

COMMAND: Final = "command"
PATH: Final = "path"
DOMAIN: Final = "domain"

_PATH_TOOLS = frozenset({"read", "write", "edit", "multiedit", "glob", "grep", "ls"})
_DOMAIN_TOOLS = frozenset({"webfetch"})
_PATH_PREFIX = re.compile(r"\s*path\s*:\s*", re.IGNORECASE)

Fold = Callable[[str], str]
Checked = TypeVar("Checked")


@attrs.frozen(slots=False)
class CallPattern:
    """One ``Tool(param pattern)`` entry; repeated blanks in ``argument`` count as one."""

    entry: str
    tool: str
    argument: str
    form: str

    def grants(
        self, values: list[str], fold: Fold | None = None, kind: str = COMMAND, roots: tuple[str, ...] = ()
    ) -> bool:
        """Whether all ``values`` are covered; a prefix never covers a chained command.

        ``roots`` is the absolute root of paths.
        """
        if not self._is_about(kind):
            return False
        if kind == PATH:
            return bool(values) and all(grants_path(self.path, value, roots) for value in values)
        if kind == DOMAIN:
            return bool(values) and all(grants_domain(self.argument, value) for value in values)
        return bool(values) and all(
            self._covers(value) or (fold is not None and self._is_equivalent_to(value, fold))
            for value in values
        )

    def denies(
        self, values: list[str], fold: Fold | None = None, kind: str = COMMAND, roots: tuple[str, ...] = ()
    ) -> bool:
        """Whether one of ``values``, or a command contained in one, is covered.

        Several values may be the words of one command, so they are also checked joined. A denied folder
        covers everything in it.
        """
        if not self._is_about(kind) or (kind == COMMAND and self._has_root):
            return True
        if kind == PATH:
            return any(denies_path(self.path, value, roots) for value in values)
        if kind == DOMAIN:
            return any(denies_domain(self.argument, value) for value in values)
        if fold is not None and any(self._is_equivalent_to(value, fold) for value in values):
            return True
        whole = [" ".join(values), shlex.join(values)] if len(values) > 1 else []
        return any(self._covers(value) or self._is_contained_in(value) for value in [*values, *whole])

    def _is_about(self, kind: str) -> bool:
        if self.form == "any":
            return True
        if kind == DOMAIN:
            return self.form == DOMAIN
        return self.form != DOMAIN and (kind == PATH or self.form != PATH)

    @cached_property
    def _has_root(self) -> bool:
        return (
            self.form in ("exact", "prefix") and self.tool.casefold() in _PATH_TOOLS and is_rooted(self.path)
        )

    @cached_property
    def path(self) -> str:
        """The pattern for the paths that it covers."""
        if self.form in ("any", PATH):
            return _ANY_PATH if self.form == "any" else self.argument
        # Unchanged, because two blanks in a path are not one.
        written = _without_prefix(self.entry.partition("(")[2].rpartition(")")[0])
        return f"{written[: -len(_PREFIX)].rstrip()}/{_ANY_PATH}" if self.form == "prefix" else written

    def _is_equivalent_to(self, value: str, fold: Fold) -> bool:
        return self.form == "exact" and fold(value) == fold(self.argument)

    def _covers(self, value: str) -> bool:
        if self.form == "any":
            return True
        words = _spaced(value)
        if self.form == "exact":
            return words == self.argument
        begins = words == self.argument or words.startswith(f"{self.argument} ")
        return begins and not _is_chained(words)

    def _is_contained_in(self, value: str) -> bool:
        plain = without_quotes(value)
        if not self._words or not all(word in plain for word in self._words if word != SEPARATOR):
            return False  # the usual case, and quick
        return any(reading.holds(self._words, more=self.form == "prefix") for reading in _read(value))

    @cached_property
    def _words(self) -> list[str]:
        words = next(readings(self.argument)).words
        return [word for place, word in enumerate(words) if word != SEPARATOR or 0 < place < len(words) - 1]


@lru_cache(maxsize=8)
def _read(value: str) -> tuple[Reading, ...]:
    # Many entries are matched with the same command.
    return tuple(readings(value))


def is_call_pattern(entry: str) -> bool:
    """Whether an entry is meant as ``Tool(param pattern)``."""
    return "(" in entry or ")" in entry


def parse_call_pattern(entry: str) -> CallPattern:
    """Parse ``Tool(param pattern)``; ValueError describes a mistake."""
    match = _FORM.fullmatch(entry)
    if match is None:
        raise ValueError(f"{entry!r} is neither a tool name nor Tool(param pattern)")
    tool, argument = match["tool"].strip(), _spaced(match["argument"])
    form = "exact"
    if argument == _ANY:
        form = "any"
    elif tool.casefold() in _DOMAIN_TOOLS and argument.startswith(DOMAIN_PREFIX):
        return CallPattern(entry, tool, _checked(entry, checked_domain, argument), DOMAIN)
    elif tool.casefold() in _PATH_TOOLS and _is_path(argument):
        path = _without_prefix(match["argument"])
        _checked(entry, check_path_pattern, path)
        return CallPattern(entry, tool, path, PATH)
    elif tool.casefold() in _PATH_TOOLS:
        _checked(entry, check_path, argument)
    if form != "any" and argument.endswith(_PREFIX):
        form, argument = "prefix", argument[: -len(_PREFIX)].rstrip()
    if not tool or not argument:
        raise ValueError(f"{entry!r} must name a tool and, in parentheses, what its call looks like")
    if form != "any" and _ANY in argument:
        raise ValueError(
            f"{entry!r}: only a final :* matches more words; for anything else write params with a pattern"
        )
    if form == "prefix" and _is_chained(argument):
        raise ValueError(f"{entry!r}: a prefix covers no chained command, so it cannot hold one")
    return CallPattern(entry, tool, argument, form)


def is_about_path_or_host(tool: str, argument: str) -> bool:
    """Whether an entry is about a path or a host."""
    name = tool.strip().casefold()
    return name in _PATH_TOOLS or (name in _DOMAIN_TOOLS and argument.strip().startswith(DOMAIN_PREFIX))


def as_path_or_host(tool: str, argument: str) -> str:
    """Return the argument in a form that can mean nothing else."""
    argument = argument.strip()
    if tool.strip().casefold() in _DOMAIN_TOOLS or _is_path(argument):
        return argument
    return f"path:{argument}"


def _is_path(argument: str) -> bool:
    is_words = argument.endswith(_PREFIX)
    return _PATH_PREFIX.match(argument) is not None or (is_path_pattern(argument) and not is_words)


def _without_prefix(argument: str) -> str:
    found = _PATH_PREFIX.match(argument)
    return argument[0 if found is None else found.end() :].strip()


def _checked(entry: str, check: Callable[[str], Checked], argument: str) -> Checked:
    try:
        return check(argument)
    except ValueError as error:
        raise ValueError(f"{entry!r} {error}") from None


def texts_to_match(value: Any) -> list[str] | None:
    """Return the strings to match; None without any."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return value
    return None


def _is_chained(text: str) -> bool:
    return _EXPANSION in text or _CHAINS.search(text) is not None


def _spaced(text: str) -> str:
    # For a shell, other white space is an ordinary character or ends a command.
    return " ".join(filter(None, text.strip(" \t\n").replace("\t", " ").split(" ")))
