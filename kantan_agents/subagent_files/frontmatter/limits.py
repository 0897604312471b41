"""Rejects lines that look like a limit on tools but do not parse as one: no typo lifts a limit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Final

from kantan_agents.subagent_files.frontmatter.keys import KEY_OF, LIMITS
from kantan_agents.subagent_files.frontmatter.nodes import RefusedYamlError

_AFTER: Final = "[:=\ufe55\uff1a\ua789\u2236\u2192]"
_NAME: Final = r"(?:(?P<kind>(?:dis[\W_]?)?allowed|denied)[\W_]{0,3})?tools"
_LOOKALIKE: Final = re.compile(rf"[\W_]*{_NAME}[\W_]*{_AFTER}", re.IGNORECASE)
# Without a colon, only a word that does not occur in prose is a key.
_WORD: Final = re.compile(r"[\W_]*(?P<kind>(?:dis)?allowed|denied)[-_]?tools(?!\S)", re.IGNORECASE)
# YAML's complex key: `? tools`.
_COMPLEX_KEY: Final = re.compile(rf"\s*\?\s*[\"']?{_NAME}[\"']?\s*\Z", re.IGNORECASE)
_NOT_A_KEY: Final = (
    "this line looks like {key} but cannot be read as that key; write '{key}:' at the beginning of a line"
)


def limit_in(line: str) -> str | None:
    """Return the tool field that a line probably sets, even in Markdown or without a colon."""
    if not line.isascii():
        plain = unicodedata.normalize("NFKC", line)
        line = "".join(char for char in plain if unicodedata.category(char) != "Cf")
    if "tools" not in line.lower() or line.lstrip().startswith("#"):
        return None
    found = _LOOKALIKE.match(line) or _WORD.match(line) or _COMPLEX_KEY.match(line)
    if found is None:
        return None
    kind = found["kind"]
    return "tools" if not kind or kind.lower() == "allowed" else "disallowed_tools"


def refuse_limits(text: str, fields: Collection[str | None], offset: int = 0) -> None:
    """Reject a line that looks like a limit, unless the file sets that field elsewhere."""
    if frozenset(fields) >= LIMITS:
        return
    for line in text.splitlines(keepends=True):
        refuse_limit(line, fields, offset)
        offset += len(line)


def refuse_limit(line: str, fields: Collection[str | None], index: int, *, reason: str = _NOT_A_KEY) -> None:
    """Reject one line. ``{key}`` in ``reason`` is a placeholder."""
    field = limit_in(line)
    if field is not None and field not in fields:
        raise RefusedYamlError(index, reason.format(key=KEY_OF[field]))


def refuse_swallowed(front: str, fields: Collection[str | None]) -> None:
    """Reject YAML whose quoted string contains a limit at column 0 that the file lacks."""
    if frozenset(fields) >= LIMITS:
        return
    offset = 0
    for line in front.splitlines(keepends=True):
        # Keys of nested data are indented or follow a dash.
        if line[0] not in " \t-":
            refuse_limit(line, fields, offset)
        offset += len(line)
