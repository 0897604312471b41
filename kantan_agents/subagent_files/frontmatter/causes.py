"""Explains invalid YAML to authors who do not know YAML."""

from __future__ import annotations

import re
from typing import Final

from kantan_agents.subagent_files.frontmatter.keys import LISTS, field_of

_INDICATORS: Final = "*&!%@`|>{}[]"
_TAB: Final = re.compile(r"(?m)^ *\t")
_UNINDENTED: Final = re.compile(r"(?<=[\r\n])[^\s#]")
_BULLETS: Final = re.compile(r"[*+\u2022][ \t\u00a0\u202f]+[^\s#]")
_STAR: Final = re.compile(r"\*(?:\s|\Z)")
_COLON: Final = re.compile(r": |:\s*(?:[\r\n]|\Z)")


def explain_invalid_field(key: str, source: str, value: str, reason: str) -> tuple[int, str]:
    """Return the mistake in a field as (index in ``source``, message)."""
    offset = len(source) - len(value)
    text = value.strip()
    at_start = _explain_start(key, value, text)
    if at_start is not None:
        return offset, at_start
    quote = text[:1]
    tab = _TAB.search(source)
    if tab:
        return tab.start(), f"{key}: indented with a tab"
    unindented = None if text.startswith(("- ", "[", "{")) else _UNINDENTED.search(value)
    if unindented:
        return offset + unindented.start(), f"{key}: continues on lines that are not indented"
    if quote == "[" and "]" not in text:
        return offset, f"{key}: the bracket is not closed"
    colon = _COLON.search(value.rstrip())
    if colon and quote not in ("[", "{", "|", ">", "-"):
        return offset + colon.start(), f"{key}: contains ': ' and is not quoted"
    if quote and quote in _INDICATORS and quote not in "|>{}[]":
        return offset, f"{key}: text that begins with {quote!r} must be quoted"
    return offset, f"{key}: is not valid YAML: {reason}"


def _explain_start(key: str, value: str, text: str) -> str | None:
    gap = value[:1]
    if gap in ("\u00a0", "\u202f"):
        return f"{key}: a no-break space follows the colon"
    if gap and not gap.isspace():
        return f"{key}: no space follows the colon"
    if text[:1] in ('"', "'"):
        return _explain_quotes(key, text, text[:1])
    if field_of(key) in LISTS and _BULLETS.match(text):
        return f"{key}: the items of a list must begin with '- '"
    return f"{key}: * must be quoted" if _STAR.match(text) else None


def _explain_quotes(key: str, text: str, quote: str) -> str:
    if len(text) == 1 or not text.endswith(quote):
        return (
            f"{key}: the quote is not closed"
            if text.count(quote) == 1
            else f"{key}: text follows the closing quote"
        )
    return f"{key}: contains unescaped quotes or backslashes inside its quotes"
