"""Makes foreign text safe for a terminal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

from kantan_agents.support.invisible import SHOWN_BY_CODE, by_code

MAX_LINE = 500

_NOT_ASCII = re.compile("[^\x00-\x7e]")
_LAST_OF_FOUR_DIGITS = 0xFFFF
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    """Return ``text`` with invisible characters as codes, such as ``[U+001B]``.

    They could move the cursor, hide text or imitate other text. Line ends, tabs and joiners in emoji and
    words stay.
    """
    return by_code(text)


def whole(text: str) -> str:
    """Replace lone surrogates: they cannot be encoded, and pandas rejects escaped ones."""
    return _HALF_A_PAIR.sub("\ufffd", text)


def shortened(text: str, most: int) -> str:
    """Return ``text`` on one line, cut."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 3]}..."


def one_line(text: str) -> str:
    """Return ``text`` on one line, cut to ``MAX_LINE``."""
    # Split first, so that line ends become spaces before control characters are removed.
    words = printable(" ".join(text.split())).split()
    line = " ".join(words)
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 4].rstrip()} ..."


def json_text(data: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Return JSON, on one line unless for a terminal."""
    return _json(data, default, indent=2 if sys.stdout.isatty() else None)


def json_line(data: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Return ``data`` as JSON on one line, even for a terminal."""
    return _json(data, default, indent=None)


def _json(data: Any, default: Callable[[Any], Any] | None, *, indent: int | None) -> str:
    text = whole(json.dumps(data, ensure_ascii=False, indent=indent, default=default))
    encodes_all = (sys.stdout.encoding or "").lower().startswith("utf")
    return (SHOWN_BY_CODE if encodes_all else _NOT_ASCII).sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code <= _LAST_OF_FOUR_DIGITS else json.dumps(match[0])[1:-1]
