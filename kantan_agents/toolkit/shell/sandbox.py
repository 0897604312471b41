"""The sandbox of commands: bubblewrap, where it is installed and works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs

BUBBLEWRAP = "bwrap"
TEMPORARY = "/tmp"  # noqa: S108 - inside of the sandbox, a directory of the run's own

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
        readable: Further files and directories that it may read.
    """

    program: str
    root: str
    writes: bool
    network: bool
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
        line += _system()
        for name in _ETC:
            line += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        line += ["--proc", "/proc", "--dev", "/dev", "--bind", temporary, TEMPORARY, "--dir", "/var/tmp"]  # noqa: S108
        for path in (*_python(self.root), *self.readable):
            line += ["--ro-bind-try", path, path]
        line += ["--bind" if self.writes else "--ro-bind", self.root, self.root]
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
    sandbox = Sandbox(program, root, writes=writes, network=network, readable=readable)
    line = sandbox.around([shell, "-c", "exit 0"], root)
    try:
        done = subprocess.run(  # noqa: S603 - the program is bubblewrap, and the shell does nothing
            line,
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


def _system() -> list[str]:
    line: list[str] = []
    for path in _SYSTEM:
        if os.path.islink(path):  # noqa: PTH114 - so that /bin is the link that it is outside
            line += ["--symlink", os.readlink(path), path]  # noqa: PTH115
        else:
            line += ["--ro-bind-try", path, path]
    return line


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
