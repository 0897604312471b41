"""Determines whether a style attribute hides its element."""

from __future__ import annotations

import math
import re
from typing import Final

TINY: Final = 1.0
"""No one can read this font size in pixels."""

_FAR: Final = 500.0
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\([0-9a-f]{1,6})\s?|\\(.)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,2})?)([a-z%]*)")
_PIXELS: Final = {
    "": 1.0,
    "px": 1.0,
    "pt": 1.3,
    "em": 16.0,
    "rem": 16.0,
    "ex": 8.0,
    "ch": 8.0,
    "vw": 10.0,
    "vh": 10.0,
}
_CLIPPED: Final = re.compile(
    r"rect\((?:[\s,]*[01](?:px)?){4}\s*\)|inset\(\s*(?:50|100)%.*|circle\(\s*0.*|polygon\(\s*0[\s,0]*\)"
)
_SHRUNK: Final = re.compile(r"scale[xy]?\(\s*0?\.?0*\s*[,)]")


def declarations(style: str) -> dict[str, str]:
    """Return the effective declarations of a style attribute."""
    if not style:
        return {}
    text = _ESCAPE.sub(_unescaped, _COMMENT.sub("", style)).lower()
    found: dict[str, str] = {}
    important: set[str] = set()
    for one in text.split(";"):
        name, colon, value = one.partition(":")
        name, (value, mark, _) = name.strip(), value.partition("!")
        if colon and (mark or name not in important):
            found[name] = value.strip()
            important |= {name} if mark else set()
    return found


def _unescaped(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[2]
    code = int(match[1], 16)
    return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else "\ufffd"  # noqa: PLR2004 - Unicode


def is_gone(style: dict[str, str]) -> bool:
    """Return whether declarations hide a whole element."""
    if style.get("display") == "none" or style.get("content-visibility") == "hidden":
        return True
    if _is_zero(style.get("opacity")) or _CLIPPED.fullmatch(style.get("clip-path", style.get("clip", ""))):
        return True
    if style.get("color") == "transparent" or _SHRUNK.search(style.get("transform", "")):
        return True
    if (style.get("overflow") or style.get("overflow-y") or "")[:6] in ("hidden", "clip"):
        sizes = (style.get(name) for name in ("height", "max-height", "width", "max-width"))
        if any(size is not None and abs(size) <= TINY for size in map(_number, sizes)):
            return True
    is_moved = style.get("position") in ("absolute", "fixed")
    names = ("text-indent", "margin-left", *(("left", "top", "right", "bottom") if is_moved else ()))
    offsets = (_number(style.get(name)) for name in names)
    return any(offset is not None and offset <= -_FAR for offset in offsets)


def _is_zero(value: str | None) -> bool:
    number = _number(value)
    return number is not None and abs(number) < 0.05  # noqa: PLR2004 - unreadable


def size_of(style: dict[str, str]) -> float | None:
    """Return the font size; None without one, infinity if it is not a length."""
    if "font-size" in style:
        size = _number(style["font-size"])
        return math.inf if size is None else size
    sizes = [_number(word.partition("/")[0]) for word in style.get("font", "").split()]
    return next((size for size in sizes if size is not None), None)


def _number(value: str | None) -> float | None:
    found = _NUMBER.fullmatch(value or "")
    if found is None:
        return None
    number = float(found[1])
    scale = _PIXELS.get(found[2])
    return 0.0 if number == 0 else None if scale is None else number * scale
