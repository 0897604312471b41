"""Lines that look like a limit on tools and are not read as one: a slip of the pen must not lift it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Final

from kantan_agents.definitions.frontmatter.keys import LIMITS, WRITTEN
from kantan_agents.definitions.frontmatter.nodes import RefusedYamlError

_AFTER: Final = "[:=\ufe55\uff1a\ua789\u2236\u2192]"
_NAME: Final = r"(?:(?P<kind>(?:dis[\W_]?)?allowed|denied)[\W_]{0,3})?tools"
_LOOKALIKE: Final = re.compile(rf"[\W_]*{_NAME}[\W_]*{_AFTER}", re.IGNORECASE)
# Without a colon only what is no word of prose is taken for a key.
_WORD: Final = re.compile(r"[\W_]*(?P<kind>(?:dis)?allowed|denied)[-_]?tools(?!\S)", re.IGNORECASE)
_ASKED: Final = re.compile(rf"\s*\?\s*[\"']?{_NAME}[\"']?\s*\Z", re.IGNORECASE)


def limit_in(line: str) -> str | None:
    """Return the field a line may be meant to set, however it is written; None for comments and other lines.

    ``"tools": Read``, ``- tools: Read``, ``**tools**: Read``, ``Tools = Read`` and ``allowed-tools Read`` are
    meant to, as far as one can tell.
    """
    if not line.isascii():
        plain = unicodedata.normalize("NFKC", line)
        line = "".join(char for char in plain if unicodedata.category(char) != "Cf")
    if "tools" not in line.lower() or line.lstrip().startswith("#"):
        return None
    found = _LOOKALIKE.match(line) or _WORD.match(line) or _ASKED.match(line)
    if found is None:
        return None
    kind = found["kind"]
    return "tools" if not kind or kind.lower() == "allowed" else "disallowed_tools"


def refuse_limits(text: str, read: Collection[str | None], offset: int = 0) -> None:
    """Refuse a text with a line that looks like a limit on tools, unless a key of that kind is read.

    Args:
        text: A part of the frontmatter that is not read as a limit.
        read: The fields that the file sets.
        offset: Where the text begins in the frontmatter.

    Raises:
        RefusedYamlError: It has such a line.
    """
    if frozenset(read) >= LIMITS:
        return
    for line in text.splitlines(keepends=True):
        refuse_limit(line, read, offset)
        offset += len(line)


def refuse_limit(line: str, read: Collection[str | None], index: int) -> None:
    """Refuse one line; see `refuse_limits`."""
    field = limit_in(line)
    if field is not None and field not in read:
        key = WRITTEN[field]
        reason = f"a line that looks like {key} and cannot be read as it; write '{key}:' where a line begins"
        raise RefusedYamlError(index, reason)


def refuse_swallowed(front: str, read: Collection[str | None]) -> None:
    """Refuse YAML in which a line at column 0 looks like a limit on tools, but is part of a text in quotes.

    Raises:
        RefusedYamlError: There is one, and no key of that kind is read.
    """
    if frozenset(read) >= LIMITS:
        return
    offset = 0
    for line in front.splitlines(keepends=True):
        # Keys of data are indented or stand behind a dash.
        if line[0] not in " \t-":
            refuse_limit(line, read, offset)
        offset += len(line)
