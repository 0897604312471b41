"""How a user's server finds its programs, whatever the working directory.

The user approved ``npx -y PACKAGE``, not a repository's program named ``npx``.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import attrs

from kantan_agents.tools.mcp.configuration.places import up_to_the_root

# Lists of folders in which programs find code.
_LISTS = frozenset(
    {"PATH", "PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB", "CLASSPATH", "LD_LIBRARY_PATH"}
    | {"DYLD_LIBRARY_PATH"}
)


@attrs.frozen
class OwnStart:
    """``left_out`` are the omitted entries of ``PATH``, in the current project."""

    env: Mapping[str, str]
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, written: Mapping[str, str], expanded: Mapping[str, str]) -> OwnStart:
        """Return how a server starts.

        Configured values stay unchanged. Values from the environment lose the entries where a project could
        have files.
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
        """Return a program's path; FileNotFoundError if it is missing, or only in the project's folders."""
        if os.path.dirname(command):  # noqa: PTH120 - of a string
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
    """Return the working directory and its parents up to its repository's root.

    A folder that contains the user's home is not a project.
    """
    try:
        working = Path(os.path.realpath(Path.cwd()))
    except OSError:  # it was deleted
        return ()
    home = Path(os.path.realpath(os.path.expanduser("~")))  # noqa: PTH111 - never fails
    return tuple(folder for folder in up_to_the_root(working) if not home.is_relative_to(folder))


def _outside(entries: Iterable[str], folders: tuple[Path, ...]) -> Iterator[str]:
    for entry in entries:
        # An empty or relative entry means the working directory.
        if not os.path.isabs(entry):  # noqa: PTH117 - of a string
            continue
        places = (Path(os.path.normpath(entry)), Path(os.path.realpath(entry)))
        if not any(place.is_relative_to(folder) for place in places for folder in folders):
            yield entry


def _find(command: str, folders: Iterable[str]) -> str | None:
    # On Windows, `shutil.which` would search the working directory first.
    endings = [""]
    if os.name == "nt" and not Path(command).suffix:
        endings = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(os.pathsep)
    for folder in filter(None, folders):
        for ending in endings:
            path = os.path.join(folder, f"{command}{ending}")  # noqa: PTH118 - unchanged
            if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
                return path
    return None
