"""Invisible characters.

A test compares ``javascript()`` with ``page/static/lib/invisible.js``.
"""

from __future__ import annotations

import re
from typing import Final
from unicodedata import category

INVISIBLE: Final = (
    "0000-0008",  # control characters except tab and line feed
    "000B-001F",
    "007F-009F",
    "00AD",  # soft hyphen
    "034F",  # combining grapheme joiner
    "061C",  # direction
    "115F-1160",  # fillers of Hangul
    "17B4-17B5",  # invisible vowels of Khmer
    "180B-180F",  # variation selectors and the vowel separator of Mongolian
    "200B-200F",  # zero-width space, joiners and directions
    "2028-202E",  # separators of lines and paragraphs, and directions
    "2060-206F",  # word joiner, invisible operators and directions
    "3164",  # filler of Hangul
    "D800-DFFF",  # surrogate halves, which no encoding has
    "FE00-FE0F",  # variation selectors
    "FEFF",  # byte order mark
    "FFA0",  # filler of Hangul
    "FFF0-FFFB",  # annotations
    "13430-1343F",  # layout of hieroglyphs
    "1BCA0-1BCA3",  # layout of shorthand
    "1D173-1D17A",  # layout of music
    "E0000-E0FFF",  # tags, which spell ASCII, and variation selectors
)

JOINERS: Final = ("200C-200D", "FE0E-FE0F")
"""Emoji and words of some scripts need these."""

EMOJI: Final = (
    "00A9", "00AE", "203C", "2049", "2122", "2139", "2190-21FF", "2300-23FF", "24C2", "25A0-27BF",
    "2934-2935", "2B00-2BFF", "3030", "303D", "3297", "3299", "1F000-1FAFF",
)  # fmt: skip
"""Variation selectors and joiners combine these into emoji."""

JOINED: Final = ("0620-08FF", "0900-0DFF", "1000-109F", "1780-17B3", "17B6-17FF", "1820-18AA")
"""Scripts in which joiners change the rendering, such as Arabic."""


def _class(ranges: tuple[str, ...], form: str) -> str:
    return "".join("-".join(form.format(int(code, 16)) for code in one.split("-")) for one in ranges)


def _pattern(form: str) -> str:
    """Return the pattern of characters that are shown by code.

    A joiner is not shown where it has an effect. Two in a row, or one elsewhere, have none.
    """
    emoji, joined, joiners = (_class(one, form) for one in (EMOJI, JOINED, JOINERS))
    selectors, joiner, keycap = (form.format(code) for code in (0xFE0F, 0x200D, 0x20E3))
    alone = _class(INVISIBLE, form)
    fits = "|".join(
        (
            f"(?<=[{emoji}])[{_class(JOINERS[1:], form)}]",
            f"(?<=[0-9#*]){selectors}(?={keycap})",
            f"(?<=[{emoji}{selectors}]){joiner}(?=[{emoji}])",
            f"(?<=[{joined}])[{_class(JOINERS[:1], form)}](?=[{joined}])",
        )
    )
    return f"(?=[{joiners}])(?!{fits})[{joiners}]|(?![{joiners}])[{alone}]"


_PYTHON: Final = "\\U{:08X}"
SHOWN_BY_CODE: Final = re.compile(_pattern(_PYTHON))
_ANY: Final = re.compile(f"[{_class(INVISIBLE, _PYTHON)}]")


# Whether they are shown depends on the next character.
_UNDECIDED: Final = re.compile("[\r\u200c\u200d\ufe0f]\\Z")


def by_code(text: str, *, strict: bool = False) -> str:
    """Show each invisible character as its code, such as ``[U+202E]``.

    ``strict`` is for text on which the user bases a decision: it also shows joiners that emoji and words
    need, and unassigned and private-use characters, which fonts may lack.
    """
    if text.isascii() and text.isprintable():
        return text
    # A Windows line end is not an invisible character.
    text = text.replace("\r\n", "\n")
    if not strict:
        return SHOWN_BY_CODE.sub(_code, text)
    text = _ANY.sub(_code, text)
    return "".join(f"[U+{ord(one):04X}]" if category(one) in ("Cn", "Co") else one for one in text)


def without_invisible(text: str) -> tuple[str, int]:
    """Also return the number of removed characters."""
    return SHOWN_BY_CODE.subn("", text.replace("\r\n", "\n"))


class ByCode:
    """``by_code`` for streamed text."""

    def __init__(self) -> None:
        self._last = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return the part that does not depend on the next character."""
        text = self._held + piece
        shown = _UNDECIDED.sub("", text)
        self._held = text[len(shown) :]
        return self._shown(shown)

    def end(self) -> str:
        """Return the rest."""
        held, self._held = self._held, ""
        shown = self._shown(held)
        self._last = ""
        return shown

    def _shown(self, text: str) -> str:
        before, self._last = self._last, (self._last + text)[-1:]
        return by_code(before + text)[len(by_code(before)) :] if text else ""


def javascript() -> str:
    """The page's module with the pattern."""
    pattern = _pattern("\\u{{{:X}}}")
    made_by = "// Made by javascript() in kantan_agents/support/invisible.py."
    return f"{made_by}\n\nexport const INVISIBLE =\n  /{pattern}/gu;\n"


def _code(match: re.Match[str]) -> str:
    return f"[U+{ord(match[0]):04X}]"
