"""How a server of the user finds its programs, whatever folder this process works in.

The user said yes to a command such as ``npx -y PACKAGE``, and not to what a repository calls ``npx``.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import attrs

from kantan_agents.tools.mcp.configuration.places import up_to_the_root

# Lists of folders in which programs look for code.
_LISTS = frozenset(
    {"PATH", "PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB", "CLASSPATH", "LD_LIBRARY_PATH"}
    | {"DYLD_LIBRARY_PATH"}
)


@attrs.frozen
class OwnStart:
    """What a server of the user starts with.

    Attributes:
        env: The environment variables that are given to it.
        left_out: The entries of ``PATH`` that are not, because they lie in the folder that is worked in.
    """

    env: Mapping[str, str]
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, written: Mapping[str, str], expanded: Mapping[str, str]) -> OwnStart:
        """Return how a server starts.

        What the configuration spells out stays as it is: the user wrote it. What comes from the environment
        of this process loses the entries that a project could have files in.

        Args:
            written: Its variables as they are configured.
            expanded: The same with the values of references.
        """
        folders = project_folders()
        env = dict(expanded)
        inherited = {name for name, text in written.items() if name.upper() in _LISTS and "${" in text}
        if not any(name.upper() == "PATH" for name in written):
            env["PATH"] = os.environ.get("PATH", os.defpath)
            inherited.add("PATH")
        left_out: list[str] = []
        for name in inherited:
            entries = env[name].split(os.pathsep)
            kept = list(_outside(entries, folders))
            env[name] = os.pathsep.join(kept)
            if name.upper() == "PATH":
                left_out = [entry for entry in entries if entry and entry not in kept]
        return cls(env, tuple(dict.fromkeys(left_out)))

    def program(self, command: str) -> str:
        """Return the path of a program; a path is returned as it is.

        Raises:
            FileNotFoundError: It is not in ``PATH``, or only in folders of the project.
        """
        if os.path.dirname(command):  # noqa: PTH120 - of a text
            return command
        path = next((text for name, text in self.env.items() if name.upper() == "PATH"), "")
        found = _find(command, path.split(os.pathsep))
        if found is not None:
            return found
        reason = os.strerror(errno.ENOENT)
        elsewhere = _find(command, self.left_out)
        if elsewhere is not None:
            reason = (
                f"your own server does not use programs of the folder that you work in, such as {elsewhere}; "
                "write the full path of the program that you mean into your configuration"
            )
        raise FileNotFoundError(errno.ENOENT, reason, command)


def project_folders() -> tuple[Path, ...]:
    """Return the working directory and those above it up to the root of its repository.

    A folder that the user's home lies in, as for a repository of configuration files, is not a project.
    """
    try:
        working = Path(os.path.realpath(Path.cwd()))
    except OSError:  # it was deleted
        return ()
    home = Path(os.path.realpath(os.path.expanduser("~")))  # noqa: PTH111 - never fails
    return tuple(folder for folder in up_to_the_root(working) if not home.is_relative_to(folder))


def _outside(entries: Iterable[str], folders: tuple[Path, ...]) -> Iterator[str]:
    for entry in entries:
        # An empty entry, and each that is relative, means the working directory.
        if not os.path.isabs(entry):  # noqa: PTH117 - of a text
            continue
        places = (Path(os.path.normpath(entry)), Path(os.path.realpath(entry)))
        if not any(place.is_relative_to(folder) for place in places for folder in folders):
            yield entry


def _find(command: str, folders: Iterable[str]) -> str | None:
    # `shutil.which` would look in the working directory first on Windows.
    endings = [""]
    if os.name == "nt" and not Path(command).suffix:
        endings = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(os.pathsep)
    for folder in filter(None, folders):
        for ending in endings:
            path = os.path.join(folder, f"{command}{ending}")  # noqa: PTH118 - as it is written
            if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
                return path
    return None
