"""The configured servers of all files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from kantan_agents.tools.mcp.configuration.entry import ServerEntry
from kantan_agents.tools.mcp.configuration.places import FoundConfiguration, find_files, is_own_file
from kantan_agents.tools.mcp.configuration.read_file import read_file


@attrs.frozen
class Configuration:
    """The configured servers.

    Attributes:
        entries: The servers, including those with mistakes; names are unique.
        shadowed: Servers with the name of one in a file of higher priority.
    """

    entries: tuple[ServerEntry, ...] = ()
    shadowed: tuple[ServerEntry, ...] = ()
    allow_env: frozenset[str] = frozenset()
    paths: tuple[Path, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Unique names."""
        return tuple(entry.name for entry in self.entries)

    @property
    def remarks(self) -> tuple[tuple[Path, str], ...]:
        """All mistakes and remarks."""
        return tuple(
            (entry.source.path, one) for entry in self.entries for one in (*entry.mistakes, *entry.remarks)
        )

    def find(self, name: str) -> ServerEntry | None:
        """Return the server or None."""
        return next((entry for entry in self.entries if entry.name == name), None)


def read_configuration(
    paths: Iterable[Path] | None = None,
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """Read files in order of priority; E180, E181 for mistakes outside the servers."""
    places = (
        find_files(cwd, environ)
        if paths is None
        else tuple(FoundConfiguration(path, is_own_file(path, environ)) for path in paths)
    )
    files = [read_file(place.path, is_own=place.is_own) for place in places]
    if paths is not None:
        # The user's list of variables also applies to named files.
        files += [
            attrs.evolve(read_file(place.path, is_own=True), entries=())
            for place in find_files(cwd, environ)
            if place.is_own and place not in places
        ]
    configured = [entry for file in files for entry in file.entries]
    used: dict[str, ServerEntry] = {}
    shadowed = [entry for entry in configured if used.setdefault(entry.name, entry) is not entry]
    allowed = frozenset(name for file in files for name in file.allow_env)
    return Configuration(
        tuple(used.values()), tuple(shadowed), allowed, tuple(place.path for place in places)
    )
