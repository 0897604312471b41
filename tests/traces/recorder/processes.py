"""Runs scripts in separate processes: start, watch, signal, wait."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from tests.programs import Preloaded, Program

# The beginning of every script; its database is the first argument.
PRELUDE = """
import asyncio
import os
import signal
import sys
import threading
import time
from agents import custom_span, function_span, get_current_trace, set_trace_processors, trace
from kantan_agents.traces.recorder import SQLiteRecorder, record_traces

path = sys.argv[1]


# A recorder that writes only when it must.
def lazy():
    recorder = record_traces(path, flush_interval=30.0)
    wait_until(lambda: recorder._queue.waking.sleeping)
    recorder._queue.waking.urgent = False  # left over from opening the file
    return recorder


# Not signal.pause(): a signal that comes just before it is handled only after the next one.
def until_signal():
    while True:
        time.sleep(0.01)


def say(text):
    os.write(1, f"{text}\\n".encode())


def record(*names, parent=None):
    for name in names:
        with custom_span(name, parent=parent):
            pass


def wait_until(holds, seconds=300.0):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.005)
"""

SECONDS = 300.0  # for actions that take two; the machine may be busy


def wait_until(holds: Callable[[], Any], what: Callable[[], str] = str) -> None:
    """Return as soon as ``holds()`` is true; fail with the text ``what()`` after ``SECONDS``."""
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"timed out: {what()}")
        time.sleep(0.005)


@attrs.define
class Process:
    """A running script."""

    _program: Program
    _out: Path
    _err: Path

    @property
    def pid(self) -> int:
        """Its number."""
        return self._program.pid

    @property
    def out(self) -> str:
        """Its output so far."""
        return self._out.read_text() if self._out.exists() else ""

    @property
    def err(self) -> str:
        """Its error output so far."""
        return self._err.read_text() if self._err.exists() else ""

    def until(self, line: str) -> Process:
        """Wait until it has printed ``line``."""
        wait_until(
            lambda: f"{line}\n" in self.out or self._program.poll() is not None,
            lambda: line + self.err + self.out,
        )
        assert f"{line}\n" in self.out, self.err
        return self

    def is_running(self) -> bool:
        """Return whether it has not ended."""
        return self._program.poll() is None

    def send(self, number: int) -> Process:
        """Send it a signal."""
        self._program.send_signal(number)
        return self

    def wait(self) -> int:
        """Wait for it; return its exit status, negative if a signal ended it."""
        try:
            wait_until(lambda: self._program.poll() is not None, lambda: f"its end\n{self.out}{self.err}")
        finally:
            self.end()
        status = self._program.poll()
        assert status is not None
        return status

    def end(self) -> None:
        """Kill it if it is still running."""
        self._program.kill()


@attrs.define
class Start:
    """``start(body, *arguments)`` runs a script in a process; ``close`` ends all of them."""

    preloaded: Preloaded
    folder: Path
    started: list[Process] = attrs.field(factory=list)

    def __call__(
        self,
        body: str,
        *arguments: object,
        bare: bool = False,
        unprivileged: bool = False,
        thorough: bool = False,
        wait: bool = False,
    ) -> Process:
        """Start a script; with ``wait``, also check that it exits with 0 and without error output.

        Args:
            body: The script.
            *arguments: Its command line; the first is the database.
            bare: Whether to leave out ``PRELUDE``, which imports the SDK.
            unprivileged: Whether to run it as a user without privileges.
            thorough: Whether to run the full teardown of the interpreter at the end.
            wait: Whether to wait for the script.
        """
        number = len(self.started)
        script = self.folder / f"script_{number}.py"
        if not number:
            (self.folder / "prelude.py").write_text(PRELUDE)
        script.write_text(("" if bare else "from prelude import *\n") + textwrap.dedent(body))
        out, err = self.folder / f"out_{number}", self.folder / f"err_{number}"
        with out.open("ab") as to_out, err.open("ab") as to_err:
            program = self.preloaded.popen(
                [*("-W", "error"), script, *map(str, arguments)],
                cwd=self.folder,
                stdout=to_out,
                stderr=to_err,
                unprivileged=unprivileged,
                thorough=thorough,
            )
        process = Process(program, out, err)
        self.started.append(process)
        if wait:
            assert process.wait() == 0, process.err
            assert process.err == ""
        return process

    def close(self) -> None:
        """End all scripts that are still running."""
        for process in self.started:
            process.end()
