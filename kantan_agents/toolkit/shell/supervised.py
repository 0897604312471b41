"""A command with its supervisor: the process of ``supervisor.py``, and the pipes to it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from kantan_agents.toolkit.shell.leftovers import MARK, end_leftovers
from kantan_agents.toolkit.shell.limits import ShellLimits

_SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))
_STOP = b"."


@attrs.frozen
class Launch:
    """How a command is started.

    Attributes:
        argv: Its command line.
        root: Its directory.
        environment: Its environment.
        limits: What it may use.
        is_sandboxed: Whether the command line begins with the sandbox.
    """

    argv: Sequence[str]
    root: str
    environment: dict[str, str]
    limits: ShellLimits
    is_sandboxed: bool


class Supervised:
    """The process of ``supervisor.py``, and the pipes to it.

    Attributes:
        session: The session of the command; None until the supervisor has said it.
        status: The pipe with what the supervisor says.
        output: The pipe with what the command prints.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._line: int | None = None
        self._mark = secrets.token_hex(16)
        self.session: int | None = None
        self.status = self.output = -1

    def open(self) -> None:
        """Start it. Not for the event loop.

        Raises:
            OSError: It cannot be started.
        """
        limits = self._launch.limits
        output, printed = os.pipe()
        plan = {
            "argv": list(self._launch.argv),
            "output": printed,
            "parent": os.getpid(),
            "sandboxed": self._launch.is_sandboxed,
            "grace": limits.grace_seconds,
            "limits": {
                "memory_bytes": limits.memory_bytes,
                "cpu_seconds": limits.cpu_seconds,
                "processes": limits.processes,
            },
        }
        try:
            process = subprocess.Popen(  # noqa: S603 - the program is this package's own
                [sys.executable, "-I", "-S", _SUPERVISOR, json.dumps(plan)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                cwd=self._launch.root,
                env={**self._launch.environment, MARK: self._mark},
                pass_fds=(printed,),
                start_new_session=True,  # Ctrl-C in the terminal is for the library
            )
        except BaseException:
            os.close(output)
            raise
        finally:
            os.close(printed)
        self._process, self.output = process, output
        if process.stdin is None or process.stdout is None:
            raise OSError("no pipes")  # never: both were asked for
        self._line, self.status = process.stdin.fileno(), process.stdout.fileno()
        for one in (self.output, self.status, self._line):
            os.set_blocking(one, False)

    def stop(self) -> None:
        """Ask the processes to end; after some seconds they are killed."""
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
        """Kill the supervisor and all processes that are found without its help. Not for the event loop."""
        if self._process is not None:
            end_leftovers(self._mark, self.session, self._process.pid)

    def end_leftovers(self) -> None:
        """Kill all processes that are found, after the end of the supervisor. Not for the event loop."""
        end_leftovers(self._mark, self.session)

    def close(self) -> None:
        """Wait for its end, which has come when its status has ended. Not for the event loop."""
        self.hang_up()
        if self._process is not None:
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            os.close(self.output)


def session_in(said: bytes) -> int | None:
    """Return the session of the command in what the supervisor has said; None if it is not there yet."""
    with suppress(ValueError, TypeError, KeyError):
        return int(json.loads(said.partition(b"\n")[0])["started"])
    return None
