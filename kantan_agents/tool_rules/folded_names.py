"""Entries of deny in another spelling."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

import attrs

from kantan_agents.tool_rules.calls import CallPattern, is_call_pattern
from kantan_agents.tool_rules.globs import is_glob
from kantan_agents.tool_rules.names import CACHED_NAMES, NameSet
from kantan_agents.tool_rules.origins import Origin

_SET = re.compile(r"(\[[^\]]*\])")
_OTHER = re.compile(r"[^a-z0-9_]")
_OTHER_IN_GLOB = re.compile(r"[^a-z0-9_*?]")


def _fold(name: str) -> str:
    return _OTHER.sub("_", unicodedata.normalize("NFKC", name).casefold())


def _letters(name: str) -> str:
    """Return letters and digits in lower case; the parts of an MCP tool's name stay apart."""
    folded = _fold(name)
    parts = folded.split("__") if folded.startswith("mcp__") else [folded]
    return "__".join(part.replace("_", "") for part in parts)


def _folded_names(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (_fold(name), _letters(name)))))


def _folded_entries(entry: str) -> Iterator[str]:
    tool, opening, rest = entry.partition("(") if is_call_pattern(entry) else (entry, "", "")
    tool = tool.strip()
    if not is_glob(tool):
        yield from (f"{folded}{opening}{rest}" for folded in _folded_names(tool))
        return
    # Sets of characters, such as [a-z], stay unchanged.
    parts = _SET.split(unicodedata.normalize("NFKC", tool).casefold())
    folded = (part if _SET.fullmatch(part) else _OTHER_IN_GLOB.sub("_", part) for part in parts)
    yield f"{''.join(folded)}{opening}{rest}"


@attrs.frozen(slots=False, eq=False)
class FoldedNameSet(NameSet):
    """Entries that also cover names with the same letters and digits: ``WebSearch`` covers ``web-search``.

    A glob pattern ignores case and treats all signs as ``_``.
    """

    def entry_for(self, names: Iterable[str], origin: Origin | None = None) -> str | None:
        """Return the entry that covers all calls."""
        names = tuple(names)
        found = super().entry_for(names, origin)
        if found is not None or not self._folded.names:
            return found
        folded = self._folded.entry_for(_all_folded(names), origin)
        return None if folded is None else self._originals[folded]

    def calls_of(self, names: Iterable[str], origin: Origin | None = None) -> tuple[CallPattern, ...]:
        """Return the entries for some calls."""
        names = tuple(names)
        calls = {call.entry: call for call in super().calls_of(names, origin)}
        for call in self._folded.calls_of(_all_folded(names), origin):
            entry = self._originals[call.entry]
            calls.setdefault(entry, attrs.evolve(call, entry=entry))
        return tuple(calls.values())

    def entries_about(self, names: Iterable[str], origin: Origin | None = None) -> list[str] | str | None:
        """Return all entries about a tool."""
        names = tuple(names)
        exact, folded = (
            super().entries_about(names, origin),
            self._folded.entries_about(_all_folded(names), origin),
        )
        if not isinstance(exact, list) or not isinstance(folded, list):
            return exact
        return list(dict.fromkeys([*exact, *(self._originals[entry] for entry in folded)]))

    @cached_property
    def _originals(self) -> dict[str, str]:
        originals: dict[str, str] = {}
        for entry in self._entries:
            for folded in _folded_entries(entry):
                originals.setdefault(folded, entry)
        return originals

    @cached_property
    def _folded(self) -> NameSet:
        return NameSet(self.names if self.names is None or self.everything else tuple(self._originals))


@lru_cache(maxsize=CACHED_NAMES)
def _all_folded(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(folded for name in names for folded in _folded_names(name))
