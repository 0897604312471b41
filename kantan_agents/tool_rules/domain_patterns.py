"""Matches hosts with the patterns of ``WebFetch(domain:example.com)``."""

from __future__ import annotations

import re

PREFIX = "domain:"

_HOST = re.compile(r"(?:\*\.)?[^\s*/:@?#\[\]]+|\[?[0-9a-fA-F:.]+\]?")
_SUBDOMAINS = "*."


def checked_domain(argument: str) -> str:
    """Return the host in ``domain:HOST``, as hosts are compared.

    Raises:
        ValueError: It is not ``domain:`` with one host, such as ``example.com`` or ``*.example.com``.
    """
    host = argument.removeprefix(PREFIX).strip()
    if not argument.startswith(PREFIX) or _HOST.fullmatch(host) is None:
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
