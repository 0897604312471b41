"""The text that the search index holds of a trace, and the query that finds a word in it.

The index holds sequences of three characters. It need not be exact, because every trace that it names is
searched again; it must only never miss one. Therefore a word is split as the texts are:

- A word is compared in one of two forms, with the ASCII letters in lower case or with all letters folded. The
  index holds both forms of a line in which they differ. SQLite itself folds nothing.
- A line that occurs twice is held once. Therefore no sequence that contains a line break is looked up.
- SQLite ends a text at a zero character, so that becomes a line break too.
"""

from __future__ import annotations

from collections.abc import Iterable

LENGTH = 3
"""Characters of a sequence; a shorter word cannot be looked up."""

_BREAK = "\n"

# A longer word is looked up by sequences from all its parts, which are as rare together as all of them.
_MOST = 32


def needs_case_folding(word: str) -> bool:
    """Return whether ``word`` has letters outside ASCII that have a case."""
    return any(not char.isascii() and not char.casefold() == char == char.upper() for char in word)


def fold(word: str) -> str:
    """Return ``word`` in the form in which it is compared with a text of the same form."""
    return word.casefold() if needs_case_folding(word) else lower_ascii(word)


def lower_ascii(text: str) -> str:
    """Return ``text`` with its ASCII letters in lower case, as SQLite's ``lower()`` does."""
    return text.lower() if text.isascii() else text.encode().lower().decode()


def indexed_text(texts: Iterable[str]) -> str:
    """Return what the index holds of a trace with these inputs and outputs."""
    lines: dict[str, None] = {}
    for text in texts:
        lines.update(dict.fromkeys(text.replace("\0", _BREAK).split(_BREAK)))
    forms = {lower_ascii(line): None for line in lines}
    forms.update({line.casefold(): None for line in lines if not line.isascii()})
    return _BREAK.join(forms)


def match_query(word: str) -> str | None:
    """Return the query of FTS5 for ``word``; None if the index cannot look it up."""
    lines = fold(word).replace("\0", _BREAK).split(_BREAK)
    found = [
        *dict.fromkeys(
            line[start : start + LENGTH] for line in lines for start in range(len(line) - LENGTH + 1)
        )
    ]
    step = -(-len(found) // _MOST) or 1
    quoted = (sequence.replace('"', '""') for sequence in found[::step])
    return " AND ".join(f'"{sequence}"' for sequence in quoted) or None
