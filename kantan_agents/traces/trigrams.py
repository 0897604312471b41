"""The indexed text of a trace, and the query that finds a word in it.

The index may name too many traces, because each is searched again, but must never miss one. Therefore a word
is split exactly like the indexed text: in lower case (ASCII letters), and folded, because SQLite folds
nothing. All differing forms of a line are indexed; a repeated line is indexed once, so no sequence with a
line break is looked up. SQLite ends a string at a zero character, so that becomes a line break too.
"""

from __future__ import annotations

from collections.abc import Iterable
from unicodedata import normalize

LENGTH = 3
"""A shorter word cannot be looked up."""

_BREAK = "\n"

# Sequences from all parts of a longer word are as rare as all its sequences.
_MOST = 32


def fold(text: str) -> str:
    """Fold case and width, and separate diacritics from their letters."""
    if text.isascii():
        return text.lower()
    # Folding may decompose letters, and some have a case only in their usual form.
    return normalize("NFKC", normalize("NFKC", text).casefold())


def forms_of(text: str) -> tuple[str, ...]:
    """Return the different forms to index and compare; one for ASCII.

    The second is for files that an earlier version has indexed.
    """
    return (*dict.fromkeys((lower_ascii(text), text.casefold(), fold(text))),)


def lower_ascii(text: str) -> str:
    """Lower only ASCII letters, as SQLite's ``lower()`` does."""
    return text.lower() if text.isascii() else text.encode().lower().decode()


def indexed_text(texts: Iterable[str]) -> str:
    """Return the text to index."""
    lines: dict[str, None] = {}
    for text in texts:
        lines.update(dict.fromkeys(text.replace("\0", _BREAK).split(_BREAK)))
    return _BREAK.join(dict.fromkeys(form for line in lines for form in forms_of(line)))


def match_query(word: str) -> str | None:
    """Return the FTS5 query; None if the index cannot look up ``word``."""
    queries = [_query_of(form) for form in forms_of(word)]
    if None in queries:
        return None  # one short form, so the index excludes no trace
    return " OR ".join(f"({query})" for query in queries) if len(queries) > 1 else queries[0]


def _query_of(form: str) -> str | None:
    lines = form.replace("\0", _BREAK).split(_BREAK)
    found = [
        *dict.fromkeys(
            line[start : start + LENGTH] for line in lines for start in range(len(line) - LENGTH + 1)
        )
    ]
    step = -(-len(found) // _MOST) or 1
    quoted = (sequence.replace('"', '""') for sequence in found[::step])
    return " AND ".join(f'"{sequence}"' for sequence in quoted) or None
