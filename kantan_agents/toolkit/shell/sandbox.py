"""The sandbox of commands: bubblewrap, where it is installed and works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

BUBBLEWRAP = "bwrap"
TEMPORARY = "/tmp"  # noqa: S108 - inside of the sandbox, a directory of the run's own

_TEMPORARIES = (TEMPORARY, "/var/tmp")  # noqa: S108 - as above
_PROBE_SECONDS = 10.0
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
# What programs need of /etc. The rest of it may hold passwords and keys.
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
    """What a command sees of the system.

    Attributes:
        program: Path of bubblewrap.
        root: The directory of the command.
        writes: Whether it may write there.
        network: Whether it reaches the network.
        system: Arguments that show it the system's programs.
        readable: Arguments that show it further files and directories.
    """

    program: str
    root: str
    writes: bool
    network: bool
    system: tuple[str, ...]
    readable: tuple[str, ...]

    def around(self, argv: Sequence[str], temporary: str) -> list[str]:
        """Return the command line that runs ``argv`` in the sandbox.

        Args:
            argv: The command line.
            temporary: The directory that is ``/tmp`` in the sandbox.
        """
        shared = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        if not self.network:
            shared.append("--unshare-net")
        line = [self.program, *shared, "--die-with-parent", "--cap-drop", "ALL"]
        # Read-only: root, which this process may be, could otherwise set the kernel's options in /proc/sys.
        line += [*self.system, "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
        for place in _TEMPORARIES:
            line += ["--bind", temporary, place]
        line += [*self.readable, "--bind" if self.writes else "--ro-bind", self.root, self.root]
        return [*line, "--remount-ro", "/", "--chdir", self.root, "--", *argv]


def find_sandbox(
    root: str, shell: str, *, writes: bool, network: bool, readable: tuple[str, ...]
) -> Sandbox | str:
    """Return a sandbox that has really run the shell, or why there is none. Not for the event loop.

    Args:
        root: The directory of commands.
        shell: Path of the shell.
        writes: Whether commands may write there.
        network: Whether they reach the network.
        readable: What else they may read.
    """
    program = shutil.which(BUBBLEWRAP)
    if program is None:
        return f"{BUBBLEWRAP} is not installed"
    shown = _shown((*_python(root), *readable))
    sandbox = Sandbox(program, root, writes, network, system=_system(), readable=shown)
    try:
        # Not the root itself: bubblewrap creates in it the directories that it mounts others on.
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
        return sandbox
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


def _shown(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(part for path in paths for part in ("--ro-bind-try", path, path))


def _python(root: str) -> list[str]:
    """Return the directories of the Python environment, unless more than that is in them."""
    home = Path.home()
    found: list[str] = []
    for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
        path = Path(os.path.realpath(prefix))
        if path.is_relative_to("/usr") or not (path / "bin").is_dir():
            continue
        if not home.is_relative_to(path) and not Path(root).is_relative_to(path):
            found += dict.fromkeys((prefix, str(path)))
    return found
