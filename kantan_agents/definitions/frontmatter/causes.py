"""Why a field is no YAML, in words for a person who wrote it and never read YAML's specification."""

from __future__ import annotations

import re
from typing import Final

from kantan_agents.definitions.frontmatter.keys import LISTS, field_of

_INDICATORS: Final = "*&!%@`|>{}[]"
_TAB: Final = re.compile(r"(?m)^ *\t")
_UNINDENTED: Final = re.compile(r"(?<=[\r\n])[^\s#]")
_BULLETS: Final = re.compile(r"[*+\u2022][ \t\u00a0\u202f]+[^\s#]")
_STAR: Final = re.compile(r"\*(?:\s|\Z)")
_COLON: Final = re.compile(r": |:\s*(?:[\r\n]|\Z)")


def cause(key: str, source: str, value: str, reason: str) -> tuple[int, str]:
    """Return what is wrong with a field as (index in ``source``, words).

    Args:
        key: Its key.
        source: All of its lines.
        value: What stands after the colon.
        reason: YAML's own words, for what nothing here explains.
    """
    offset = len(source) - len(value)
    text = value.strip()
    begins_with = _of_beginning(key, value, text)
    if begins_with is not None:
        return offset, begins_with
    quote = text[:1]
    tab = _TAB.search(source)
    if tab:
        return tab.start(), f"{key}: indented with a tab"
    unindented = None if text.startswith(("- ", "[", "{")) else _UNINDENTED.search(value)
    if unindented:
        return offset + unindented.start(), f"{key}: goes on over lines that are not indented"
    if quote == "[" and "]" not in text:
        return offset, f"{key}: its bracket does not close"
    colon = _COLON.search(value.rstrip())
    if colon and quote not in ("[", "{", "|", ">", "-"):
        return offset + colon.start(), f"{key}: holds ': ' and stands in no quotes"
    if quote and quote in _INDICATORS and quote not in "|>{}[]":
        return offset, f"{key}: a text that begins with {quote!r} must stand in quotes"
    return offset, f"{key}: is no valid YAML: {reason}"


def _of_beginning(key: str, value: str, text: str) -> str | None:
    gap = value[:1]
    if gap in ("\u00a0", "\u202f"):
        return f"{key}: a no-break space stands after the colon"
    if gap and not gap.isspace():
        return f"{key}: no space stands after the colon"
    if text[:1] in ('"', "'"):
        return _of_quotes(key, text, text[:1])
    if field_of(key) in LISTS and _BULLETS.match(text):
        return f"{key}: the items of a list must begin with '- '"
    return f"{key}: * must stand in quotes" if _STAR.match(text) else None


def _of_quotes(key: str, text: str, quote: str) -> str:
    if len(text) == 1 or not text.endswith(quote):
        return (
            f"{key}: its quote does not close"
            if text.count(quote) == 1
            else f"{key}: goes on after its quotes"
        )
    return f"{key}: holds quotes or backslashes within its quotes that are not escaped"
