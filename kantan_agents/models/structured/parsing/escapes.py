"""Backslashes in the strings of damaged JSON, where an escape may be a word or a path that was not escaped.

It does not find commands of LaTeX that are usual words without their first letter (``\nless``, ``\ni``), the
commands of packages, and paths without a drive or a server in front (``src\test``).
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any, Final

from kantan_agents.models.structured.parsing.strict_json import NOTHING, unescape

AMBIGUOUS: Final = type(NOTHING)()
"""The result for a value with more than one reading."""

_LATEX = (
    r"tabular|tag|tanh?|tau|tbinom|text(?:bf|color|it|normal|rm|sc|sf|style|subscript|superscript|tt|width)?|tfrac"
    r"|therefore|theta|thickapprox|thinspace|tilde|times|tiny|title|to|today|top|toprule|triangle[a-z]*"
    r"|nVdash|nabla|natural|ncong|nearrow|neq?|neg|newcommand|newline|newpage|nexists|ngeq(?:slant)?|ngtr"
    r"|nleftarrow|nleq(?:slant)?|noindent|nolimits|nonumber|normalsize|not|notag|notin|npreceq|nrightarrow"
    r"|nsubseteq|nsucceq|nsupseteq|nu|nvdash|nwarrow"
)
# Valid escapes, but nearly always the start of a word: \build, \frac, \right, \theta, C:\temp. Tabs and line
# breaks are common, so \t and \n count only in a LaTeX command and after a drive or a server.
_CONTROL = re.compile(
    rf"(?<!\\)(?:\\\\)*\\(?:[bf]|r(?!\\n)|(?:{_LATEX})(?![A-Za-z])"
    # The letters in "Q:\nWhy?\nA:\nBecause." are not drives.
    r"|(?<=\b[A-Za-z]:\\)t|(?<=\b[C-PR-Zc-pr-z]:\\)n)"
    r"|(?<=[\"'])\\\\[\w.-]+\\[nt]"
)
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
# Escapes of Python or JavaScript, or damaged ones.
_FOREIGN = re.compile(r"\\(?:[av0-7\n\r]|x[0-9a-fA-F]{2}|u[0-9a-fA-F{]|U[0-9a-fA-F]{8}|N\{)")


def has_control(text: str, start: int, end: int) -> bool:
    """Return whether an escape is ambiguous."""
    return _CONTROL.search(text, start, end) is not None


def unescape_damaged(body: str, quotes: Container[str]) -> Any:
    """Return a damaged string decoded; ``AMBIGUOUS`` if it has more than one reading.

    ``has_control`` finds nothing in ``body``. ``quotes`` may be escaped.
    """
    escapes = [match[0] for match in _ESCAPE.finditer(body) if match[0][1] not in quotes]
    known = [escape for escape in escapes if unescape(escape) is not None]
    # Paths and patterns mean their backslashes, unless one could be an escape.
    is_path = len(known) < len(escapes)
    if is_path and (known or _FOREIGN.search(body)):
        return AMBIGUOUS

    def character(escape: re.Match[str]) -> str:
        written = escape[0]
        if written[1] in quotes:
            return written[1]
        return written if is_path else str(unescape(written))

    return _ESCAPE.sub(character, body)
