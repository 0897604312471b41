"""Entries of deny that cover a tool's name in another case, or with other characters, as well."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property

import attrs

from kantan_agents.tool_rules.calls import CallPattern, is_call_pattern
from kantan_agents.tool_rules.names import NameSet, is_glob

_SET = re.compile(r"(\[[^\]]*\])")
_OTHER = re.compile(r"[^a-z0-9_]")
_OTHER_IN_GLOB = re.compile(r"[^a-z0-9_*?]")


def fold_name(name: str) -> str:
    """Return a tool's name in lower case with ``_`` for each character other than a letter or a digit."""
    return _OTHER.sub("_", unicodedata.normalize("NFKC", name).casefold())


def _fold_entry(entry: str) -> str:
    tool, opening, rest = entry.partition("(") if is_call_pattern(entry) else (entry, "", "")
    tool = tool.strip()
    if not is_glob(tool):
        return f"{fold_name(tool)}{opening}{rest}"
    # Sets of characters, such as [a-z], keep their characters.
    parts = _SET.split(unicodedata.normalize("NFKC", tool).casefold())
    folded = [part if _SET.fullmatch(part) else _OTHER_IN_GLOB.sub("_", part) for part in parts]
    return f"{''.join(folded)}{opening}{rest}"


@attrs.frozen(slots=False, eq=False)
class FoldedNameSet(NameSet):
    """Entries that also cover names with the same letters and digits in another case.

    All other characters are equal: ``Web-Search`` covers ``web_search``.
    """

    def entry_for(self, names: Iterable[str]) -> str | None:
        """Return the entry that covers all calls of a tool with these names, or None."""
        names = tuple(names)
        found = super().entry_for(names)
        if found is not None or not self._folded.names:
            return found
        folded = self._folded.entry_for(map(fold_name, names))
        return None if folded is None else self._originals[folded]

    def calls_of(self, names: Iterable[str]) -> tuple[CallPattern, ...]:
        """Return the entries for some calls of a tool with these names."""
        names = tuple(names)
        exact = super().calls_of(names)
        folded = [
            attrs.evolve(call, entry=self._originals[call.entry])
            for call in self._folded.calls_of(map(fold_name, names))
        ]
        known = {call.entry for call in exact}
        return (*exact, *(call for call in folded if call.entry not in known))

    def entries_about(self, names: Iterable[str]) -> list[str] | str | None:
        """Return all entries that concern a tool with these names."""
        names = tuple(names)
        exact, folded = super().entries_about(names), self._folded.entries_about(map(fold_name, names))
        if not isinstance(exact, list) or not isinstance(folded, list):
            return exact
        return list(dict.fromkeys([*exact, *(self._originals[entry] for entry in folded)]))

    @cached_property
    def _originals(self) -> dict[str, str]:
        """Folded entry -> the entry as it is written."""
        originals: dict[str, str] = {}
        for entry in self._entries:
            originals.setdefault(_fold_entry(entry), entry)
        return originals

    @cached_property
    def _folded(self) -> NameSet:
        return NameSet(self.names if self.names is None or self.everything else tuple(self._originals))
