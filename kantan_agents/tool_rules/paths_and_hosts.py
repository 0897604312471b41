"""Matches paths and hosts with the patterns of ``Read(src/**)`` and ``WebFetch(domain:example.com)``.

Paths are relative to the root of the tool. ``*`` and ``?`` match within one step, ``**`` matches any number
of steps. There are no sets of characters and no escapes, so ``[`` is an ordinary character. In deny, a
pattern without a slash covers the name at any depth, and what covers a folder covers all that is in it. The
time is linear in the length of the path for each step of the pattern.
"""

from __future__ import annotations

import re
import unicodedata

_ANY_STEPS = "**"
DOMAIN_PREFIX = "domain:"
_HOST = re.compile(r"(?:\*\.)?[^\s*/:@?#\[\]]+|\[?[0-9a-fA-F:.]+\]?")
_SUBDOMAINS = "*."


def is_path_pattern(argument: str) -> bool:
    """Return whether the argument of an entry has wildcards."""
    return "*" in argument or "?" in argument


def check_path_pattern(argument: str) -> None:
    """Check a path in an entry.

    Raises:
        ValueError: No path inside the root of a tool can match it.
    """
    steps = argument.split("/")
    if not argument or argument.startswith(("~", "//")) or "\\" in argument or ".." in steps:
        raise ValueError("must be a path below the root of the tool, without '..', '~' and backslashes")


def grants_path(pattern: str, path: str) -> bool:
    """Return whether a pattern of allow covers a path."""
    return _matches(_steps(pattern), _steps(path))


def denies_path(pattern: str, path: str) -> bool:
    """Return whether a pattern of deny covers a path or a folder above it, ignoring case.

    A file system may take two spellings of a name for the same file.
    """
    steps, wanted = _steps(_folded(path)), _steps(_folded(pattern))
    if "/" not in pattern.rstrip("/"):
        wanted = [_ANY_STEPS, *wanted]
    return any(_matches(wanted, steps[:end]) for end in range(len(steps) + 1))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


def _matches(pattern: list[str], steps: list[str]) -> bool:
    reached = {0}
    for wanted in pattern:
        if not reached:
            return False
        if wanted == _ANY_STEPS:
            reached = set(range(min(reached), len(steps) + 1))
        else:
            reached = {
                place + 1 for place in reached if place < len(steps) and _step_matches(wanted, steps[place])
            }
    return len(steps) in reached


def _step_matches(wanted: str, name: str) -> bool:
    """Match one step; after a mismatch, only the last ``*`` can match more."""
    place = at = 0
    star, resumed = -1, 0
    while at < len(name):
        if place < len(wanted) and wanted[place] == "*":
            star, resumed = place, at
            place += 1
        elif place < len(wanted) and wanted[place] in ("?", name[at]):
            place, at = place + 1, at + 1
        elif star >= 0:
            resumed += 1
            place, at = star + 1, resumed
        else:
            return False
    return not wanted[place:].strip("*")


def checked_domain(argument: str) -> str:
    """Return the host in ``domain:HOST``, as hosts are compared.

    Raises:
        ValueError: It is not ``domain:`` with one host, such as ``example.com`` or ``*.example.com``.
    """
    host = argument.removeprefix(DOMAIN_PREFIX).strip()
    if not argument.startswith(DOMAIN_PREFIX) or _HOST.fullmatch(host) is None:
        raise ValueError("must name one host, such as domain:example.com or domain:*.example.com")
    if not host.isascii():
        raise ValueError("must name the host in its ASCII form, such as domain:xn--bcher-kva.example")
    return host.lower().rstrip(".")


def grants_domain(pattern: str, host: str) -> bool:
    """Return whether a pattern of allow covers a host; subdomains only if it begins with ``*.``."""
    if pattern.startswith(_SUBDOMAINS):
        return host.endswith(pattern[1:])
    return host == pattern


def denies_domain(pattern: str, host: str) -> bool:
    """Return whether a pattern of deny covers a host; its subdomains are covered too."""
    domain = pattern.removeprefix(_SUBDOMAINS)
    return host == domain or host.endswith(f".{domain}")
