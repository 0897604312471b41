"""Entries of allow and deny, with lookup by tool name in constant time."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Literal

import attrs

from kantan_agents.tool_rules.calls import CallPattern, is_call_pattern, parse_call_pattern
from kantan_agents.tool_rules.globs import is_glob, literal_beginning
from kantan_agents.tool_rules.origins import SERVER_PREFIX, Origin

Names = tuple[str, ...] | Literal["*"] | None
"""Entries in order, ``"*"`` for every tool, None if the key is not set."""

EVERY: Literal["*"] = "*"
CACHED_NAMES = 4096


def union(one: Names, other: Names) -> Names:
    """None adds nothing, ``"*"`` includes all (spec 9.2)."""
    if one is None or other is None:
        return other if one is None else one
    if EVERY in (one, other):
        return EVERY
    return tuple(dict.fromkeys((*one, *other)))


@lru_cache(maxsize=CACHED_NAMES)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(glob))


class NamePatterns:
    """Finds the entries that cover a name.

    With a set and a cache, ten thousand entries are as fast as one.
    """

    __slots__ = ("_exact", "_globs", "_seen")

    def __init__(self, names: Iterable[str]) -> None:
        names = tuple(names)
        self._exact = frozenset(names)
        self._globs = [(name, literal_beginning(name)) for name in names if is_glob(name)]
        self._seen: dict[str, tuple[str, ...]] = {}

    def covering(self, name: str, origin: Origin | None = None) -> tuple[str, ...]:
        """The name itself first, then patterns."""
        found = self._covering(name)
        if origin is None or not found:
            return found
        return tuple(entry for entry in found if origin.lets(entry, name))

    def _covering(self, name: str) -> tuple[str, ...]:
        exact = (name,) if name in self._exact else ()
        if not self._globs:
            return exact
        found = self._seen.get(name)
        if found is None:
            found = exact + tuple(
                entry
                for entry, beginning in self._globs
                if entry != name and name.startswith(beginning) and _pattern(entry).match(name)
            )
            if len(self._seen) >= CACHED_NAMES:  # models can invent any number of names
                self._seen.clear()
            self._seen[name] = found
        return found


@attrs.frozen(slots=False, eq=False)
class NameSet:
    """The entries of allow or deny.

    ``literal``: ``mcp__files (old)`` also names a server that is called so.
    """

    names: Names
    literal: bool = False

    @property
    def everything(self) -> bool:
        """Whether it is ``"*"``."""
        return self.names == EVERY

    def entry_for(self, names: Iterable[str], origin: Origin | None = None) -> str | None:
        """Return the entry that covers all calls and that ``origin`` permits."""
        if self.everything:
            return EVERY
        if not self.names:
            return None
        for name in names:
            found = self._patterns.covering(name, origin)
            if found:
                return self._entries_by_name[found[0]]
        return None

    def calls_of(self, names: Iterable[str], origin: Origin | None = None) -> tuple[CallPattern, ...]:
        """Return the entries for some calls."""
        if not self._calls:
            return ()
        covering = dict.fromkeys(tool for name in names for tool in self._call_tools.covering(name, origin))
        return tuple(call for tool in covering for call in self._calls[tool])

    def entries_about(self, names: Iterable[str], origin: Origin | None = None) -> list[str] | str | None:
        """Return all entries about a tool."""
        if self.names is None or self.names == EVERY:
            return self.names
        names = tuple(names)
        plain = [
            self._entries_by_name[entry] for name in names for entry in self._patterns.covering(name, origin)
        ]
        return list(dict.fromkeys([*plain, *(call.entry for call in self.calls_of(names, origin))]))

    @cached_property
    def _entries(self) -> tuple[str, ...]:
        return () if self.names is None or self.names == EVERY else tuple(self.names)

    @cached_property
    def _patterns(self) -> NamePatterns:
        return NamePatterns(self._entries_by_name)

    @cached_property
    def _entries_by_name(self) -> dict[str, str]:
        written = {
            name: name
            for name in self._entries
            if not is_call_pattern(name) or (self.literal and name.startswith(SERVER_PREFIX))
        }
        for call in self._short_forms:
            if call.form == "any":
                written.setdefault(call.tool, call.entry)
        return written

    @cached_property
    def _calls(self) -> dict[str, list[CallPattern]]:
        calls: dict[str, list[CallPattern]] = {}
        for call in self._short_forms:
            if call.form != "any":
                calls.setdefault(call.tool, []).append(call)
        return calls

    @cached_property
    def _short_forms(self) -> tuple[CallPattern, ...]:
        return tuple(parse_call_pattern(name) for name in self._entries if is_call_pattern(name))

    @cached_property
    def _call_tools(self) -> NamePatterns:
        return NamePatterns(self._calls)
