"""Lists of tools that cannot have been meant as they stand: an error is better than too many tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kantan_agents.definitions.tool_lists import names_all, split_denied

_NAME: Final = re.compile(r"[\w*?\[./](?:[\w\-.*?\[\]/:]*[\w\-*?\[\]/])?")
_SETTING: Final = re.compile(r":(?:true|false|yes|no|on|off|null|allow|deny)?$", re.IGNORECASE)
_PAIR: Final = re.compile(r":\s")
_LESS: Final = frozenset({"except", "excluding", "without", "but", "not", "no", "minus"})
_LESS_OF: Final = re.compile(rf"(?:^|\s)(?:{'|'.join(sorted(_LESS))})\s", re.IGNORECASE)


def flaw_of_allowed(entries: Sequence[str]) -> str | None:
    """Return why a list of what may be used does not say what was meant, None where it does.

    Somebody who writes ``all except Bash`` or ``Read, not Bash`` must not get an agent that has Bash.
    """
    if len(entries) > 1 and names_all(entries):
        word = next(entry for entry in entries if names_all([entry]))
        return f"holds {word!r} beside other entries; it stands for all tools, so it must stand alone"
    for entry in entries:
        name = entry.partition("(")[0]
        if name.isidentifier() and name.lower() not in _LESS:  # the usual case, and quick
            continue
        if entry[:1] in ("-", "!") and len(entry) > 1:
            return f"{_shown(entry)} is no tool's name; what may not be used belongs in disallowedTools"
        if _LESS_OF.search(name) or (len(entries) > 1 and entry.lower() in _LESS):
            return f"{_shown(entry)}: what may not be used belongs in disallowedTools"
        if _SETTING.search(name) or _PAIR.search(name):
            return f"{_shown(entry)}: must be a list of names or a text, looks like a mapping"
    return None


def flaw_of_denied(entry: str) -> str | None:
    """Return why an entry of what may not be used can be no tool's, so that it would deny nothing."""
    name, opening, _ = entry.partition("(")
    if _depth(entry) > 0:
        return f"{_shown(entry)}: its parenthesis does not close"
    if opening and not name:
        return f"{_shown(entry)}: a parenthesis must stand right behind the name of a tool"
    if entry.lower() in _LESS:
        return f"{_shown(entry)}: only what may not be used can stand here"
    if _SETTING.search(name):
        return f"{_shown(entry)}: must be a list of names or a text, looks like a mapping"
    closes_last = not opening or _closing(entry) == len(entry) - 1
    is_name = _NAME.fullmatch(name) and "[[" not in name and name.count("[") == name.count("]")
    if not is_name or not closes_last or split_denied([entry]) != (entry,):
        return f"{_shown(entry)} can be no tool's name"
    return None


def _depth(text: str) -> int:
    """Return how many parentheses of a text do not close."""
    depth = 0
    for char in text:
        depth = depth + 1 if char == "(" else max(0, depth - 1) if char == ")" else depth
    return depth


def _closing(text: str) -> int:
    """Return where the first parenthesis of a text closes, -1 where it does not."""
    depth = 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == ")" and depth <= 0:
            return index
    return -1


def _shown(entry: str) -> str:
    return repr(entry[:60])
