"""Matches paths and hosts with the patterns of ``Read(src/**)`` and ``WebFetch(domain:example.com)``.

Paths are relative to the tool's root; ``//srv/app/src/**`` and ``file:///srv/app/src/**`` are absolute. ``*``
and ``?`` match within one step, ``**`` any number of steps; ``[`` and a backslash are ordinary characters. In
deny, a pattern without a slash covers the name at any depth, a covered folder covers everything in it, and
``/src`` is both absolute and relative. For each step of the pattern, the time is linear in the path.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import unquote

_ANY_STEPS = "**"
DOMAIN_PREFIX = "domain:"
_HOST = re.compile(r"(?:\*\.)?[^\s*/:@?#\[\]]+|\[?[0-9a-fA-F:.]+\]?")
_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)")
_LONGEST_NAME = 253
_SUBDOMAINS = "*."
_UNKNOWN = re.compile(r"~[^/]|(?:file:/*)?[A-Za-z]:[/\\]|\$(?:HOME|PWD)\b|\$\{", re.IGNORECASE)
_ROOTED = re.compile(r"[/~]|\.\.(?:/|$)|file:", re.IGNORECASE)
_CHOICE = re.compile(r"\{[^{}]*,[^{}]*\}")
_FILE_URL = re.compile(r"file:(?://[^/]*)?(?=/)", re.IGNORECASE)
_OF_SYSTEMS = frozenset({"etc", "home", "proc", "root", "sys", "usr", "var", "Users", "private"})
_NOT_BELOW = (
    "must be a path below the root of the tool, without '..', '~', variables, drives and "
    "backslashes; an absolute path begins with //"
)
_HERE = re.compile(r"(?:\./)+(?=/)")


def is_path_pattern(argument: str) -> bool:
    """Whether it has wildcards."""
    return "*" in argument or "?" in argument


def is_rooted(path: str) -> bool:
    """Whether a path is absolute or starts with ``..``."""
    return _ROOTED.match(path) is not None


def check_path_pattern(argument: str) -> None:
    """Raise ValueError if no path can match."""
    if not argument or argument.startswith("~") or "\\" in argument or ".." in argument.split("/"):
        raise ValueError(_NOT_BELOW)
    check_path(argument)


def check_path(argument: str) -> None:
    """Raise ValueError for a variable, drive, user's home folder or braces."""
    if _UNKNOWN.match(argument) is not None:
        raise ValueError(_NOT_BELOW)
    if _CHOICE.search(argument) is not None:
        raise ValueError("would match braces in a path; write one entry for each of the alternatives")


def grants_path(pattern: str, path: str, roots: tuple[str, ...] = ()) -> bool:
    """Whether a pattern of allow covers ``path``, which is relative to the root.

    A single leading slash in ``pattern`` means the root.
    """
    absolute = _absolute(pattern)
    if absolute is None:
        return _matches(_steps(pattern), _steps(path))
    return any(_matches(_steps(absolute), _steps(f"{root}/{path}")) for root in roots)


def denies_path(pattern: str, path: str, roots: tuple[str, ...] = ()) -> bool:
    """Whether a pattern of deny covers a path or a folder above it, ignoring case.

    All readings of the pattern count: a file system may map two spellings to one file.
    """
    return any(
        _matches([*wanted, _ANY_STEPS], _steps(_folded(f"{root}/{path}")))
        for root, wanted in _denied(pattern, roots)
    )


@lru_cache(maxsize=1024)
def _denied(pattern: str, roots: tuple[str, ...]) -> list[tuple[str, list[str]]]:
    """Return the steps of each reading, and the folder where they start."""
    relative = _steps(_folded(pattern))
    found = [("", relative if "/" in pattern.rstrip("/") else [_ANY_STEPS, *relative])]
    text = _HERE.sub("", pattern.replace("\\", "/"), count=1)
    for root in roots:
        # In `join`, an absolute path replaces the root.
        whole = posixpath.normpath(posixpath.join(root, _absolute(text) or text))
        found.append((root, _steps(_folded(whole))))
    return found


def is_outside(pattern: str, roots: tuple[str, ...], *, grants: bool) -> bool:
    """Whether nothing below the roots matches.

    In allow (``grants``), a single leading slash does not make a pattern absolute.
    """
    absolute = _absolute(pattern)
    if absolute is None and ".." in pattern.split("/"):
        wholes = [posixpath.normpath(posixpath.join(root, pattern)) for root in roots]
        return grants or all(is_outside(f"/{whole}", roots, grants=False) for whole in wholes)
    if absolute is None:  # `/srv/app/x` in allow is /srv/app/srv/app/x, which no one means
        return grants and any(f"{pattern}/".startswith(f"{root}/") for root in roots if root != "/")
    steps = _steps(_folded(absolute))
    beginnings = [steps[:end] for end in range(len(steps) + 1)]
    if not grants:
        beginnings.append([*steps, _ANY_STEPS])  # a folder above the root
    return not any(_matches(one, _steps(_folded(root))) for root in roots for one in beginnings)


def is_likely_outside(pattern: str, roots: tuple[str, ...]) -> bool:
    """Whether it probably is absolute: it starts with a folder above a root, or a rare one."""
    if not pattern.startswith("/") or pattern.startswith("//"):
        return False
    first = pattern.split("/")[1]
    is_usual = first in _OF_SYSTEMS or any(root.startswith(f"/{first}/") for root in roots)
    return is_usual and is_outside(f"/{pattern}", roots, grants=False)


def _absolute(pattern: str) -> str | None:
    found = _FILE_URL.match(pattern)
    if found is not None:
        return unquote(pattern[found.end() :])
    if pattern == "~" or pattern.startswith("~/"):
        home = posixpath.expanduser(pattern)
        return home if home.startswith("/") else None
    return pattern[1:] if pattern.startswith("//") else None


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
    """After a mismatch, only the last ``*`` can match more."""
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
    """Return a canonical host, or raise ValueError."""
    host = argument.removeprefix(DOMAIN_PREFIX).strip()
    is_host = argument.startswith(DOMAIN_PREFIX) and _HOST.fullmatch(host) is not None
    if is_host and not host.isascii():
        raise ValueError("must name the host in its ASCII form, such as domain:xn--bcher-kva.example")
    subdomains = _SUBDOMAINS if host.startswith(_SUBDOMAINS) else ""
    known = canonical_host(host.removeprefix(subdomains).strip("[]").lower()) if is_host else None
    if known is None:
        raise ValueError("must name one host, such as domain:example.com or domain:*.example.com")
    return f"{subdomains}{known}"


def canonical_host(host: str) -> str | None:
    """In lower case and ASCII; None if invalid."""
    if ":" in host:
        try:
            address = IPv6Address(host)
        except AddressValueError:
            return None
        if getattr(address, "scope_id", None) is not None:
            return None
        return str(address.ipv4_mapped or address)
    host = host.removesuffix(".")
    if len(host) > _LONGEST_NAME or _NAME.fullmatch(host) is None:
        return None
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        # For a system, `http://2130706433` and `http://0x7f.1` are 127.0.0.1; for rules, they are names.
        try:
            return str(IPv4Address(host))
        except AddressValueError:
            return None
    return host


def grants_domain(pattern: str, host: str) -> bool:
    """Subdomains match only with ``*.``."""
    if pattern.startswith(_SUBDOMAINS):
        return host.endswith(pattern[1:])
    return host == pattern


def denies_domain(pattern: str, host: str) -> bool:
    """A denied domain covers its subdomains."""
    domain = pattern.removeprefix(_SUBDOMAINS)
    return host == domain or host.endswith(f".{domain}")
