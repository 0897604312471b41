"""Turns untrusted strings from models and datasets into markup."""

from __future__ import annotations

import html
from typing import Final

from kantan_agents.support.invisible import by_code

_MOST: Final = 4_000
"""The trace has the rest."""


def text(value: object) -> str:
    """Return a value as a string that is safe in an element and in an attribute.

    Invisible characters are shown as their code, such as ``[U+202E]``. They could hide a part, make it look
    like another, or end the page for some parsers.
    """
    return html.escape(by_code(str(value)))


def block(value: object) -> str:
    """Return a long string as a block that preserves its lines, truncated if necessary."""
    given = str(value)
    more = len(given) - _MOST
    note = f'<p class="note">{more:,} more characters are in the trace.</p>' if more > 0 else ""
    return f'<pre dir="auto" tabindex="0">{text(given[:_MOST])}</pre>{note}'


def inline(value: object) -> str:
    """Return a name as one element that contains its text direction."""
    return f"<bdi>{text(value)}</bdi>"
