"""A command with its supervisor, the process of ``supervisor.py``.

A hostile command may kill or stop its supervisor. Its processes are then found without it.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from kantan_agents.toolkit.shell.limits import ShellLimits
from kantan_agents.toolkit.shell.pinned import NOTHING_PINNED, Pinned

# Read before the first command: no command can change the code that runs outside its sandbox.
_PYTHON = os.path.realpath(sys.executable) if sys.executable else ""
_MODULES = {
    f"kantan_agents.toolkit.{folder}.{name}": (Path(__file__).parents[1] / folder / f"{name}.py").read_text(
        "utf-8"
    )
    for folder, name in (
        ("shell", "usage"),
        ("named_files", "gitlinks"),
        ("shell", "unchanged_paths"),
        ("shell", "supervisor"),
    )
}
_PROGRAM = f"""import sys, types
for name, text in {_MODULES!r}.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
module.main()
"""
_STOP = b"."
_running: weakref.WeakSet[Supervised] = weakref.WeakSet()
_running_lock = threading.Lock()
_MARK = "KANTAN_AGENTS_COMMAND"
"""It identifies the processes of a command."""

_SECONDS = 5.0
_END_SECONDS = 12.0  # more than a supervisor takes to give up
_PAUSE = 0.01


@attrs.frozen
class Launch:
    """How to start a command."""

    argv: Sequence[str]
    root: str
    environment: dict[str, str]
    limits: ShellLimits
    is_sandboxed: bool
    temporary: str = ""
    pinned: Pinned = NOTHING_PINNED


class Supervised:
    """The process of ``supervisor.py``, and its pipes.

    If ``makes_way``, it was ended because a protected file is about to be written.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.is_closed = False
        self.makes_way = False
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._line: int | None = None
        self._mark = secrets.token_hex(16)
        self.session: int | None = None
        self.status = self.output = -1

    def open(self) -> None:
        """Start it; raises OSError. Blocks."""
        with _running_lock:
            _running.add(self)  # before it can change anything
        limits = self.launch.limits
        output, printed = os.pipe()
        plan = {
            "argv": list(self.launch.argv),
            "output": printed,
            "parent": os.getpid(),
            "sandboxed": self.launch.is_sandboxed,
            "grace": limits.grace_seconds,
            "temporary": self.launch.temporary,
            "kept": {
                "root": self.launch.root,
                "absent": self.launch.pinned.absent,
                "links": self.launch.pinned.links,
                "mounted": self.launch.pinned.mounted,
                "indexes": self.launch.pinned.indexes,
            },
            "limits": {
                "memory_bytes": limits.memory_bytes,
                "cpu_seconds": limits.cpu_seconds,
                "disk_bytes": limits.disk_bytes,
                "processes": limits.processes,
            },
        }
        try:
            process = subprocess.Popen(  # noqa: S603 - the program is this package's own
                [_PYTHON, "-I", "-S", "-c", _PROGRAM, json.dumps(plan)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                cwd=self.launch.root,
                env={**self.launch.environment, _MARK: self._mark},
                pass_fds=(printed,),
                start_new_session=True,  # Ctrl-C in the terminal is for the library
            )
        except BaseException:
            os.close(output)
            self.is_closed = True
            raise
        finally:
            os.close(printed)
        self._process, self.output = process, output
        if process.stdin is None or process.stdout is None:
            raise OSError("no pipes")  # never: both are pipes
        self._line, self.status = process.stdin.fileno(), process.stdout.fileno()
        for one in (self.output, self.status, self._line):
            os.set_blocking(one, False)

    def may_write(self, path: str) -> bool:
        """Return whether the command could write a path that loses its mount."""
        base, pinned = self.launch.root, self.launch.pinned
        is_new = any(f"{path}/".startswith(f"{base}/{one}/") for one in pinned.absent)
        return is_new or path in pinned.read_only

    def wait(self, seconds: float) -> None:
        """Wait for the end of its processes. Blocks."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)

    def stop(self) -> None:
        """Ask the processes to end, and kill them after some seconds."""
        with self._lock, suppress(OSError):
            if self._line is not None:
                os.write(self._line, _STOP)
                self._wake()

    def hang_up(self) -> None:
        """Kill the processes."""
        with self._lock:
            self._line = None
            if self._process is not None and self._process.stdin is not None:
                with suppress(OSError):
                    self._process.stdin.close()
                self._wake()

    def _wake(self) -> None:
        # A command without a sandbox can stop its supervisor.
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def force(self) -> None:
        """Kill the supervisor and all processes found without it. Blocks."""
        if self._process is not None:
            _end_leftovers(self._mark, self.session, self._process.pid)

    def end_leftovers(self) -> None:
        """Kill all processes found after the end of the supervisor. Blocks."""
        _end_leftovers(self._mark, self.session)

    def close(self) -> None:
        """Wait for its end, which follows the end of its status. Reentrant. Blocks."""
        self.hang_up()
        if self._process is None:
            return
        self._process.wait()
        with self._lock:
            if not self.is_closed:
                self.is_closed = True
                if self._process.stdout is not None:
                    self._process.stdout.close()
                os.close(self.output)


def pinned_by_running(root: str) -> list[Pinned]:
    """Return the pins of each sandboxed command that may write in a project."""
    launches = (one.launch for one in _all_running())
    return [one.pinned for one in launches if one.root == root and one.pinned != NOTHING_PINNED]


def runs_around(root: str) -> str | None:
    """Return the directory of a running command that may replace ``root`` by a link."""
    roots = (one.launch.root for one in _all_running() if one.launch.pinned != NOTHING_PINNED)
    return next((one for one in roots if root.startswith(f"{one}/")), None)


def end_writers(path: str) -> None:
    """End the commands that could write a protected file, given without links. Blocks.

    A tool calls it before it writes the file with consent: a command that started before would see it without
    protection.
    """
    ended = [one for one in _all_running() if one.may_write(path)]
    for one in ended:
        one.makes_way = True
        one.hang_up()
    for one in ended:
        one.wait(_END_SECONDS)


def has_writers(path: str) -> bool:
    """Return whether ``end_writers`` would end a running command."""
    return any(one.may_write(path) for one in _all_running())


def _all_running() -> list[Supervised]:
    with _running_lock:
        return [one for one in _running if not one.is_closed]


def session_in(said: bytes) -> int | None:
    """Return the session in the supervisor's report, or None."""
    with suppress(ValueError, TypeError, KeyError):
        return int(json.loads(said.partition(b"\n")[0])["started"])
    return None


@attrs.frozen
class _SystemProcess:
    pid: int
    parent: int
    session: int


def _end_leftovers(mark: str, session: int | None, supervisor: int | None = None) -> None:
    """Without ``/proc``, only the group of the command, which is its ``session``, is killed."""
    deadline = time.monotonic() + _SECONDS
    while True:
        if session is not None:
            with suppress(OSError):
                os.killpg(session, signal.SIGKILL)
        found = _found(f"{_MARK}={mark}".encode(), session, supervisor)
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found or time.monotonic() > deadline:
            return
        time.sleep(_PAUSE)


def _found(mark: bytes, session: int | None, supervisor: int | None) -> set[int]:
    processes = _processes()
    ours = {
        process.pid
        for process in processes
        if process.session == session or mark in _environment(process.pid)
    }
    below = ours if supervisor is None else ours | {supervisor}
    while True:
        more = {process.pid for process in processes if process.parent in below} - below
        if not more:
            return {process.pid for process in processes if process.pid in below}
        below |= more


def _processes() -> list[_SystemProcess]:
    processes = []
    with suppress(OSError):
        for place in Path("/proc").iterdir():
            if place.name.isdigit():
                with suppress(OSError, ValueError, IndexError):
                    # The name in parentheses may contain anything.
                    fields = (place / "stat").read_bytes().rpartition(b")")[2].split()
                    state, parent, session = fields[0], int(fields[1]), int(fields[3])
                    if state not in (b"Z", b"X"):
                        processes.append(_SystemProcess(int(place.name), parent, session))
    return processes


def _environment(pid: int) -> list[bytes]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []
