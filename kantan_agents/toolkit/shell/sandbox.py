"""The sandbox of commands: bubblewrap."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import attrs

from kantan_agents.support.data_folder import data_folder_near
from kantan_agents.toolkit.shell.pinned import NOTHING_PINNED, Pinned, find_pinned, runs_from

BUBBLEWRAP = "bwrap"
TEMPORARY = "/tmp"  # noqa: S108 - inside of the sandbox, a directory of the run's own

_TEMPORARIES = (TEMPORARY, "/var/tmp")  # noqa: S108 - as above
_PROBE_SECONDS = 10.0
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
# The rest of /etc may contain passwords and keys.
_ETC = (
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "fonts",
    "group",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust/extracted",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "protocols",
    "resolv.conf",
    "services",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)


@attrs.frozen
class Sandbox:
    """The system as a command sees it.

    ``writable`` are protected paths; the other tuples are arguments of bubblewrap.
    """

    program: str
    root: str
    writes: bool
    network: bool
    system: tuple[str, ...]
    readable: tuple[str, ...]
    writable: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def pinned(self) -> Pinned:
        """Return the current pins. Blocks."""
        return find_pinned(self.root, self.writable) if self.writes else NOTHING_PINNED

    def around(
        self,
        argv: Sequence[str],
        temporary: str,
        pinned: Pinned = NOTHING_PINNED,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> list[str]:
        """Return the command line that runs ``argv`` in the sandbox.

        Bubblewrap itself must not have the variables in ``environment``.
        """
        shared = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        if not self.network:
            shared.append("--unshare-net")
        line = [self.program, *shared, "--die-with-parent", "--cap-drop", "ALL"]
        # Read-only: root, which this process may be, could otherwise set kernel options in /proc/sys.
        line += [*self.system, "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
        # Like /dev itself, this is memory.
        line += [*self.shared, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
        for place in _TEMPORARIES:
            line += ["--bind", temporary, place]
        line += [*self.readable, "--bind" if self.writes else "--ro-bind", self.root, self.root]
        # After the root, which would otherwise cover them.
        line += [*pinned.mounts(), *self.hidden]
        for name, value in environment.items():
            line += ["--setenv", name, value]
        return [*line, "--remount-ro", "/", "--chdir", self.root, "--", *argv]


def find_sandbox(
    root: str,
    shell: str,
    *,
    writes: bool,
    network: bool,
    readable: tuple[str, ...],
    writable: tuple[str, ...] = (),
    shared_bytes: int = 0,
) -> Sandbox | str:
    """Return a sandbox that has run the shell, or why none works. Blocks."""
    program = _bubblewrap(root)
    if program is None:
        return f"{BUBBLEWRAP} is not installed"
    sandbox = Sandbox(
        program,
        root,
        # Nothing in such a directory could be protected from commands.
        writes and not runs_from(root),
        network,
        system=_system(),
        readable=_shown((*_python(root), *readable)),
        writable=writable,
        hidden=_hidden((root, *map(os.path.realpath, readable))),
    )
    if shared_bytes:
        bounded = attrs.evolve(sandbox, shared=("--size", str(shared_bytes)))
        if _problem_of(bounded, shell) is None:
            return bounded
    # Versions before 0.7 do not know the bound.
    return _problem_of(sandbox, shell) or sandbox


def _bubblewrap(root: str) -> str | None:
    # It runs outside of the sandbox, so commands must not be able to create it.
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    safe = [
        one
        for one in places
        if Path(one).is_absolute() and not Path(os.path.realpath(one)).is_relative_to(root)
    ]
    return shutil.which(BUBBLEWRAP, path=os.pathsep.join(safe)) if safe else None


def _problem_of(sandbox: Sandbox, shell: str) -> str | None:
    try:
        # Not the root: bubblewrap creates directories in it as mount points.
        with tempfile.TemporaryDirectory() as temporary:
            done = subprocess.run(  # noqa: S603 - the program is bubblewrap, and the shell does nothing
                sandbox.around([shell, "-c", "exit 0"], temporary),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_SECONDS,
                env={},
                cwd="/",
                check=False,
            )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{BUBBLEWRAP} cannot be run: {error}"
    if done.returncode == 0:
        return None
    said = done.stderr.decode("utf-8", "replace").strip()[:500]
    return f"{BUBBLEWRAP} does not work here: {said or f'exit code {done.returncode}'}"


def _system() -> tuple[str, ...]:
    line: list[str] = []
    for path in _SYSTEM:
        if os.path.islink(path):  # noqa: PTH114 - so that /bin is the link that it is outside
            line += ["--symlink", os.readlink(path), path]  # noqa: PTH115
        else:
            line += _shown([path])
    return (*line, *_shown(f"/etc/{name}" for name in _ETC))


def _hidden(seen: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(filter(None, map(data_folder_near, seen)))
    return tuple(part for path in found for part in ("--tmpfs", path, "--remount-ro", path))


def _shown(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(part for path in paths for part in ("--ro-bind-try", path, path))


def _python(root: str) -> list[str]:
    home = Path.home()
    found: list[str] = []
    for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
        path = Path(os.path.realpath(prefix))
        if path.is_relative_to("/usr") or not (path / "bin").is_dir():
            continue
        if not home.is_relative_to(path) and not Path(root).is_relative_to(path):
            found += dict.fromkeys((prefix, str(path)))
    return found
