"""Makes markup of texts from models and datasets, which may contain anything."""

from __future__ import annotations

import html
import re
from typing import Final

_MOST: Final = 4_000
"""So many characters of a text are shown; the trace has the rest."""

# They would not be visible, would end the page for some parsers, or would turn the text around them.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def text(value: object) -> str:
    """Return a value as text that is safe in an element and in an attribute.

    Control characters, marks that change the direction of text, and halves of surrogate pairs are shown as
    their code, such as ``[U+202E]``. They could hide a part of a text, or make it look like another.
    """
    # A line end of Windows is a line end, not an invisible character.
    return html.escape(_INVISIBLE.sub(_code, str(value).replace("\r\n", "\n")))


def block(value: object) -> str:
    """Return a long text as a block that keeps its lines; a very long one is cut."""
    given = str(value)
    more = len(given) - _MOST
    note = f'<p class="note">{more:,} more characters are in the trace.</p>' if more > 0 else ""
    return f'<pre dir="auto" tabindex="0">{text(given[:_MOST])}</pre>{note}'


def inline(value: object) -> str:
    """Return a name as one element whose direction does not reach its neighbours."""
    return f"<bdi>{text(value)}</bdi>"


def _code(match: re.Match[str]) -> str:
    return f"[U+{ord(match[0]):04X}]"
