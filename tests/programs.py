"""Python programs as processes that need not import the SDK: forked from ``preloaded.py``.

The interface is that of ``subprocess``, as far as tests need it. A test of what an interpreter imports, or of
how it starts, needs a new interpreter and uses ``subprocess`` itself.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock, Thread
from typing import IO, Any

LENGTH = 8
POLL_SECONDS = 0.005


class Program:
    """A running program; what it offers is part of ``subprocess.Popen``."""

    returncode: int | None = None

    def __init__(
        self, preloaded: Preloaded, pid: int, stdout: IO[Any] | None, stderr: IO[Any] | None
    ) -> None:
        self._preloaded = preloaded
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr

    def poll(self) -> int | None:
        """Return the exit status, negative if a signal ended the program, or None while it runs."""
        if self.returncode is None:
            self.returncode = self._preloaded.ask({"status": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status."""
        end = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            time.sleep(POLL_SECONDS)
        return status

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Read both streams to their end, wait, and return what was read."""
        read: dict[int, Any] = {}
        streams = [self.stdout, self.stderr]
        threads = [
            Thread(target=lambda at=at, stream=stream: read.__setitem__(at, stream.read()), daemon=True)
            for at, stream in enumerate(streams)
            if stream is not None and not stream.closed
        ]
        for thread in threads:
            thread.start()
        self.wait(timeout)
        for thread in threads:
            thread.join(timeout)
            if thread.is_alive():
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        for stream in streams:
            if stream is not None:
                stream.close()
        nothing = b"" if self.stdout is None or "b" in self.stdout.mode else ""
        return read.get(0, nothing), read.get(1, nothing)

    def send_signal(self, number: int) -> None:
        """Send a signal, if the program still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


class Preloaded:
    """The process of ``preloaded.py``."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._connection, other = socket.socketpair()
        self._directory = tempfile.TemporaryDirectory()  # a short path: that of a socket is limited
        self._socket = str(Path(self._directory.name, "socket"))
        with other, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(self._socket)
            listener.listen()
            numbers = other.fileno(), listener.fileno()
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-W", "error"),
                    *(str(Path(__file__).with_name("preloaded.py")), *map(str, numbers)),
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=numbers,
                env=dict(environ),
            )
        self._asking = Lock()

    def command(self, script: str | Path, *arguments: str | Path) -> list[str]:
        """Return a command for others who start processes, as clients of MCP do, that has a script forked.

        The script has the streams, the environment and the working directory of the command's process, but
        another process id and process group. If the command's process is terminated, so is the script. It
        starts at once: this method waits for the imports, which take longer than such clients do.
        """
        self.ask({"ready": True})
        return [
            *(sys.executable, "-I", "-S", str(Path(__file__).with_name("forked_server.py")), self._socket),
            *(str(script), *map(str, arguments)),
        ]

    def interpreter(self, path: Path) -> Path:
        """Write a program that runs a script as ``python`` does, but has it forked, as ``command`` does.

        It may also be the ``python`` of the workers of pytest-xdist.
        """
        *forking, _ = self.command("")
        path.write_text(f'#!/bin/sh\nexec {shlex.join(forking)} "$@"\n', encoding="utf-8")
        path.chmod(0o700)
        return path

    def popen(
        self,
        command: Sequence[str | Path],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        stdout: int | IO[Any] = subprocess.PIPE,
        stderr: int | IO[Any] = subprocess.PIPE,
        encoding: str | None = None,
        unprivileged: bool = False,
        thorough: bool = False,
    ) -> Program:
        """Start a program.

        Args:
            command: What follows ``python``: ``-W ACTION`` any number of times, then ``-c CODE``,
                ``-m MODULE`` or a script, then its arguments.
            cwd: Its working directory; this process's if not given.
            env: Its environment; this process's if not given.
            stdout: ``PIPE`` or a file.
            stderr: The same.
            encoding: That of the pipes, if they are to be text.
            unprivileged: Whether it runs as a user who may write only what all may write.
            thorough: Whether it takes all its modules apart at the end.
        """
        actions, kind, code, arguments = _parsed([str(part) for part in command])
        program = {
            "warnings": actions,
            "kind": kind,
            "code": code,
            "arguments": arguments,
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
            "interruptible": signal.getsignal(signal.SIGINT) is not signal.SIG_IGN,
            "unprivileged": unprivileged,
            "thorough": thorough,
        }
        opened: list[int] = [os.open(os.devnull, os.O_RDONLY)]
        streams: list[IO[Any] | None] = []
        try:
            for target in (stdout, stderr):
                if target == subprocess.PIPE:
                    ours, theirs = os.pipe()
                    opened.append(theirs)
                    streams.append(open(ours, "r" if encoding else "rb", encoding=encoding))  # noqa: SIM115, PTH123
                else:
                    assert not isinstance(target, int)
                    opened.append(os.dup(target.fileno()))
                    streams.append(None)
            pid = self.ask(program, opened)
        finally:
            for descriptor in opened:
                os.close(descriptor)
        return Program(self, pid, *streams)

    def run(
        self, command: Sequence[str | Path], *, timeout: float = 120, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Start a program and wait for it; the streams are text."""
        program = self.popen(command, encoding="utf-8", **options)
        try:
            stdout, stderr = program.communicate(timeout)
        finally:
            program.kill()
        assert program.returncode is not None
        return subprocess.CompletedProcess([*map(str, command)], program.returncode, stdout, stderr)

    def ask(self, request: Any, descriptors: Sequence[int] = ()) -> Any:
        """Return the answer to a request."""
        text = json.dumps(request).encode()
        with self._asking:
            socket.send_fds(self._connection, [len(text).to_bytes(LENGTH, "big")], descriptors)
            self._connection.sendall(text)
            count = int.from_bytes(self._exactly(LENGTH), "big")
            return json.loads(self._exactly(count))

    def _exactly(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            part = self._connection.recv(count - len(received))
            assert part, "the preloaded process has ended"
            received += part
        return received

    def close(self) -> None:
        """Let it end."""
        self._connection.close()
        self._process.wait()
        self._directory.cleanup()


def _parsed(command: list[str]) -> tuple[list[str], str, str, list[str]]:
    actions = []
    while command[0] == "-W":
        actions.append(command[1])
        command = command[2:]
    if command[0] in ("-c", "-m"):
        return actions, {"-c": "code", "-m": "module"}[command[0]], command[1], command[2:]
    return actions, "script", command[0], command[1:]
