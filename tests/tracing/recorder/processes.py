"""Scripts as processes of their own: started, watched, sent signals, waited for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

# What every script has: its database is the first argument.
PRELUDE = """
import asyncio
import os
import signal
import sys
import threading
import time
from agents import custom_span, function_span, get_current_trace, set_trace_processors, trace
from kantan_agents.tracing.recorder import SQLiteRecorder, record_traces

path = sys.argv[1]


# A recorder that writes only when it has to.
def lazy():
    recorder = record_traces(path, flush_interval=30.0)
    wait_until(lambda: recorder._queue.sleeping)
    recorder._queue.urgent = False  # left over from opening the file
    return recorder


def say(text):
    os.write(1, f"{text}\\n".encode())


def record(*names, parent=None):
    for name in names:
        with custom_span(name, parent=parent):
            pass


def wait_until(holds, seconds=30.0):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.005)
"""

SECONDS = 120.0  # for what takes two; the machine may have a lot to do


def wait_until(holds: Callable[[], Any], what: Callable[[], str] = str) -> None:
    """Return as soon as ``holds()`` is true; fail with ``what()`` if that takes very long."""
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"did not come about: {what()}")
        time.sleep(0.005)


@attrs.define
class Process:
    """A script that runs."""

    pid: int
    _status: Callable[[], int | None]
    _out: Path
    _err: Path

    @property
    def out(self) -> str:
        """What it has printed so far."""
        return self._out.read_text() if self._out.exists() else ""

    @property
    def err(self) -> str:
        """What it has complained about so far."""
        return self._err.read_text() if self._err.exists() else ""

    def until(self, line: str) -> Process:
        """Wait until it has printed ``line``."""
        wait_until(
            lambda: f"{line}\n" in self.out or self._status() is not None, lambda: line + self.err + self.out
        )
        assert f"{line}\n" in self.out, self.err
        return self

    def send(self, number: int) -> Process:
        """Send it a signal."""
        os.kill(self.pid, number)
        return self

    def wait(self) -> int:
        """Return its exit status once it has ended, negative if a signal ended it."""
        try:
            wait_until(lambda: self._status() is not None, lambda: f"its end\n{self.out}{self.err}")
        finally:
            self.end()
        status = self._status()
        assert status is not None
        return status

    def end(self) -> None:
        """Kill it, if it still runs."""
        if self._status() is None:
            os.kill(self.pid, signal.SIGKILL)


class Preloaded:
    """The process of ``preloaded.py``."""

    def __init__(self, environ: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", str(Path(__file__).with_name("preloaded.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
            text=True,
        )
        self._asking = threading.Lock()

    def ask(self, **request: Any) -> Any:
        """Return the answer to a request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._asking:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@attrs.define
class Start:
    """``start(body, *arguments)``: runs a script as a process; all of them are ended by ``close``."""

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
        """Start a script, and with ``wait`` also wait for it: it must exit with 0 and no complaint.

        Args:
            body: The script.
            *arguments: Its command line; the first is the database.
            bare: Whether it is to begin without ``PRELUDE``, which imports the SDK.
            unprivileged: Whether it is to run as a user who may write only what all may write.
            thorough: Whether it takes itself apart at the end, to the last module.
            wait: Whether to wait for it.
        """
        number = len(self.started)
        script = self.folder / f"script_{number}.py"
        if not number:
            (self.folder / "prelude.py").write_text(PRELUDE)
        script.write_text(("" if bare else "from prelude import *\n") + textwrap.dedent(body))
        out, err = self.folder / f"out_{number}", self.folder / f"err_{number}"
        pid = self.preloaded.ask(
            script=str(script),
            arguments=[str(argument) for argument in arguments],
            out=str(out),
            err=str(err),
            unprivileged=unprivileged,
            thorough=thorough,
        )
        process = Process(pid, lambda: self.preloaded.ask(status=pid), out, err)
        self.started.append(process)
        if wait:
            assert process.wait() == 0, process.err
            assert process.err == ""
        return process

    def close(self) -> None:
        """End all that still run."""
        for process in self.started:
            process.end()
