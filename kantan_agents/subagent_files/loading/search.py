"""Searches agents by words in their names and descriptions, the best match first."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import attrs

from kantan_agents.subagent_files.definition import AgentDefinition
from kantan_agents.subagent_files.names import name_key


@attrs.frozen(eq=False)
class SearchIndex:
    """Definitions with their normalized texts."""

    _entries: tuple[_Entry, ...]

    @classmethod
    def of(cls, definitions: Iterable[AgentDefinition]) -> SearchIndex:
        """Build an index. Search results of equal rank keep the order given here."""
        return cls(tuple(map(_entry, definitions)))

    def search(self, text: str) -> tuple[AgentDefinition, ...]:
        """Return the definitions that contain every word of a text, in the name or the description.

        Case and Unicode normalization do not matter. The order is: name equals the text, name begins with
        it, name contains it (all three regardless of separators), every word in the name, some words in the
        name, the whole text in the description, all words in the description.
        """
        folded = " ".join(_folded(text).split())
        words, key = folded.split(), name_key(text)
        ranked = ((_rank(entry, folded, words, key), entry) for entry in self._entries)
        found = [(rank, entry) for rank, entry in ranked if rank is not None]
        found.sort(key=lambda pair: pair[0])
        return tuple(entry.definition for _, entry in found)


@attrs.frozen(eq=False)
class _Entry:
    definition: AgentDefinition
    name: str
    key: str
    description: str


def _entry(definition: AgentDefinition) -> _Entry:
    name, description = _folded(definition.name), _folded(definition.description)
    return _Entry(definition, name, name_key(definition.name), description)


def _rank(entry: _Entry, text: str, words: list[str], key: str) -> int | None:
    """Return the rank of an entry, 0 for the best match; None if a word is missing."""
    if key:
        if entry.key == key:
            return 0
        if entry.key.startswith(key):
            return 1
        if key in entry.key:
            return 2
    in_name = [word in entry.name for word in words]
    if all(in_name):
        return 3
    if not all(named or word in entry.description for word, named in zip(words, in_name, strict=True)):
        return None
    if any(in_name):
        return 4
    return 5 if text in entry.description else 6


def _folded(text: str) -> str:
    # Case folding can produce text that is no longer normalized.
    folded = unicodedata.normalize("NFKC", text).casefold()
    return folded if folded.isascii() else unicodedata.normalize("NFKC", folded)
