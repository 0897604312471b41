"""Rejects tool lists with a doubtful meaning, rather than granting too many tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kantan_agents.subagent_files.tool_lists import includes_all, split_denied

_NAME: Final = re.compile(r"[\w*?\[./](?:[\w\-.*?\[\]/:]*[\w\-*?\[\]/])?")
_SETTING: Final = re.compile(r":(?:true|false|yes|no|on|off|null|allow|deny)?$", re.IGNORECASE)
_PAIR: Final = re.compile(r":\s")
_EXCEPT: Final = frozenset({"except", "excluding", "without", "but", "not", "no", "minus"})
_EXCEPT_PHRASE: Final = re.compile(rf"(?:^|\s)(?:{'|'.join(sorted(_EXCEPT))})\s", re.IGNORECASE)


def allowed_list_error(entries: Sequence[str]) -> str | None:
    """Return why a list of allowed tools is probably a mistake, or None.

    ``all except Bash`` or ``Read, not Bash`` must not allow Bash.
    """
    if len(entries) > 1 and includes_all(entries):
        word = next(entry for entry in entries if includes_all([entry]))
        return f"contains {word!r} and other entries; {word!r} means all tools and must be the only entry"
    for entry in entries:
        name = entry.partition("(")[0]
        if name.isidentifier() and name.lower() not in _EXCEPT:  # fast path for the usual case
            continue
        if entry[:1] in ("-", "!") and len(entry) > 1:
            return f"{_shown(entry)} is not a tool name; list denied tools in disallowedTools"
        if _EXCEPT_PHRASE.search(name) or (len(entries) > 1 and entry.lower() in _EXCEPT):
            return f"{_shown(entry)}: list denied tools in disallowedTools"
        if _SETTING.search(name) or _PAIR.search(name):
            return f"{_shown(entry)}: must be a list of names or a text, but looks like a mapping"
    return None


def denied_entry_error(entry: str) -> str | None:
    """Return why a denied entry cannot be a tool name and so denies nothing, or None."""
    name, opening, _ = entry.partition("(")
    if _unclosed_parentheses(entry) > 0:
        return f"{_shown(entry)}: the parenthesis is not closed"
    if opening and not name:
        return f"{_shown(entry)}: a parenthesis must directly follow a tool name"
    if entry.lower() in _EXCEPT:
        return f"{_shown(entry)}: only denied tools can be listed here"
    if _SETTING.search(name):
        return f"{_shown(entry)}: must be a list of names or a text, but looks like a mapping"
    closes_last = not opening or _closing_index(entry) == len(entry) - 1
    is_name = _NAME.fullmatch(name) and "[[" not in name and name.count("[") == name.count("]")
    if not is_name or not closes_last or split_denied([entry]) != (entry,):
        return f"{_shown(entry)} cannot be a tool name"
    return None


def _unclosed_parentheses(text: str) -> int:
    depth = 0
    for char in text:
        depth = depth + 1 if char == "(" else max(0, depth - 1) if char == ")" else depth
    return depth


def _closing_index(text: str) -> int:
    depth = 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == ")" and depth <= 0:
            return index
    return -1


def _shown(entry: str) -> str:
    return repr(entry[:60])
