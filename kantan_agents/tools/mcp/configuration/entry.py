"""One configured MCP server."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import attrs

from kantan_agents.support.secrets import MASK, mask

Transport: TypeAlias = Literal["stdio", "sse", "http"]

TIMEOUT_SECONDS = 60.0
START_SECONDS = 30.0


def shown_url(url: str) -> str:
    """Return a URL without user, password, query and fragment, which may be secrets."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return MASK
    query = MASK if parts.query else ""
    return mask(urlunsplit((parts.scheme, host, parts.path, query, "")))


def _names_only(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name!r}: {MASK!r}" for name in values) + "}"


def _masked(values: tuple[str, ...]) -> str:
    return repr(list(shown_arguments(values)))


def shown_arguments(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Mask secrets."""
    shown = []
    for number, argument in enumerate(arguments):
        before = arguments[number - 1] if number else ""
        # `--api-key VALUE` is a secret only together.
        pair = mask(f"{before}={argument}") if before.startswith("-") else ""
        shown.append(MASK if pair.endswith(f"={MASK}") else mask(argument))
    return tuple(shown)


@attrs.frozen
class ServerSource:
    """The source of a server's configuration.

    ``digest`` is the trusted content's SHA-256. ``folder`` is the working directory: a trusted file must not
    start other programs elsewhere. A user's own server finds no programs in the working directory.
    """

    path: Path
    digest: str
    is_own: bool = False
    folder: Path | None = None
    is_of_user: bool = False


@attrs.frozen
class ServerEntry:
    """A configured MCP server. References such as ``${TOKEN}`` are not expanded yet.

    ``cwd`` is relative to the folder of ``source``. A server with ``mistakes`` keeps its name reserved, so
    that no other file's server gets it. ``remarks`` are about options that have another meaning in other
    programs.
    """

    name: str
    transport: Transport
    source: ServerSource = attrs.field(repr=lambda source: repr(str(source.path)))
    command: str = attrs.field(default="", repr=mask)
    args: tuple[str, ...] = attrs.field(default=(), repr=_masked)
    env: Mapping[str, str] = attrs.field(factory=dict, repr=_names_only)
    cwd: str | None = None
    url: str = attrs.field(default="", repr=shown_url)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=_names_only)
    timeout_seconds: float = TIMEOUT_SECONDS
    start_seconds: float = START_SECONDS
    resources: bool = True
    is_disabled: bool = False
    mistakes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """What it starts or connects to, without secrets, for the user's decision."""
        if self.mistakes:
            return "cannot be used"
        if self.transport != "stdio":
            return shown_url(self.url)
        return shlex.join((mask(self.command), *shown_arguments(self.args)))
