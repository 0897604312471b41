"""The processes of a command whose supervisor was killed or stopped, which only a hostile command does."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import attrs

MARK = "KANTAN_AGENTS_COMMAND"
"""Variable in the environment of a command that its processes are found by."""

_SECONDS = 5.0
_PAUSE = 0.01


@attrs.frozen
class _Process:
    pid: int
    parent: int
    session: int


def end_leftovers(mark: str, session: int | None, supervisor: int | None = None) -> None:
    """Kill the processes of a command. Not for the event loop.

    Where the system has no ``/proc``, only the group of the command is killed.

    Args:
        mark: The value of ``MARK`` in its environment.
        session: Its session, which is also its group; None if it is not known.
        supervisor: Its supervisor, which has not been waited for; None if that has ended.
    """
    deadline = time.monotonic() + _SECONDS
    while True:
        if session is not None:
            with suppress(OSError):
                os.killpg(session, signal.SIGKILL)
        found = _found(f"{MARK}={mark}".encode(), session, supervisor)
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


def _processes() -> list[_Process]:
    processes = []
    with suppress(OSError):
        for place in Path("/proc").iterdir():
            if place.name.isdigit():
                with suppress(OSError, ValueError, IndexError):
                    # The name in parentheses may hold anything.
                    fields = (place / "stat").read_bytes().rpartition(b")")[2].split()
                    state, parent, session = fields[0], int(fields[1]), int(fields[3])
                    if state not in (b"Z", b"X"):
                        processes.append(_Process(int(place.name), parent, session))
    return processes


def _environment(pid: int) -> list[bytes]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []
