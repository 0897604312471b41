"""Starts worker processes, sends them tasks, and stops them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import IO, Any

import attrs

from benchmarks.peers.compared import REPOSITORY
from benchmarks.peers.frameworks.facts import BASE_URL_VARIABLE

LONGEST = 600.0
"""Maximum seconds to wait for an answer."""

_END_SECONDS = 30.0
_HERE = Path(__file__).resolve().parent
# No proxies, keys or settings of frameworks, so that a measurement depends on nothing unknown.
_KEPT = ("PATH", "HOME", "USERPROFILE", "SYSTEMROOT", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP")


class WorkerError(Exception):
    """A worker died or answered with an error; the message has its standard error."""


def clean_environment(hash_seed: int) -> dict[str, str]:
    """Return the environment variables of a worker."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {"PYTHONHASHSEED": str(hash_seed), "PYTHONNOUSERSITE": "1"}


@contextmanager
def worker_files() -> Iterator[Path]:
    """Yield a folder with copies of only the worker and the framework modules, in the same package.

    From the repository itself, its kantan_agents would be imported in place of the published one.
    """
    with tempfile.TemporaryDirectory(prefix="kantan-agents-peers-") as name:
        package = Path(name) / "benchmarks"
        shutil.copytree(
            _HERE / "frameworks",
            package / "peers" / "frameworks",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        for path in (_HERE.parent / "__init__.py", _HERE / "__init__.py", _HERE / "worker.py"):
            shutil.copy(path, package / path.relative_to(_HERE.parent))
        yield package / "peers" / "worker.py"


class Worker:
    """One process, which works only on request.

    Args:
        name: Its name in error messages.
        command: The command that starts it.
        environment: Its environment variables.
    """

    def __init__(self, name: str, command: list[str], environment: Mapping[str, str]) -> None:
        self.name = name
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by ``close``
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=dict(environment),
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the process that has started it, and closes its input
        )
        self._hello: dict[str, Any] | None = None

    @property
    def hello(self) -> dict[str, Any]:
        """What the framework supports; waits until the process has started.

        Raises:
            WorkerError: It did not start.
        """
        if self._hello is None:
            self._hello = dict(self._answer("its start"))
        return self._hello

    def has(self, entry: str) -> bool:
        """Return whether the framework has a counterpart of ``entry``.

        Raises:
            WorkerError: Its module says neither that it has one nor why not.
        """
        if entry in self.hello["workloads"]:
            return True
        if entry in self.hello["absent"]:
            return False
        raise WorkerError(f"{self.name} says nothing about {entry!r}")

    def ask(self, do: str, **task: Any) -> Any:
        """Send the process a task and return its answer.

        Raises:
            WorkerError: It failed, died, or took longer than ``LONGEST`` seconds.
        """
        _ = self.hello
        request = f"{do} {task.get('workload', '')}".strip()
        with suppress(BrokenPipeError):  # the missing answer reports that the process has ended
            self._input.write(json.dumps({"do": do, **task}) + "\n")
            self._input.flush()
        return self._answer(request)

    def close(self) -> None:
        """End the process: wait for it to end by itself, then kill it."""
        with suppress(BrokenPipeError):
            self._input.close()
        try:
            self._process.wait(_END_SECONDS)
        except BaseException as error:
            self._process.kill()
            self._process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
        finally:
            self._output.close()
            self._stderr.close()

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process, or None while it runs."""
        return self._process.poll()

    @property
    def _input(self) -> IO[str]:
        return _there(self._process.stdin)

    @property
    def _output(self) -> IO[str]:
        return _there(self._process.stdout)

    def _answer(self, request: str) -> Any:
        timer = Timer(LONGEST, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            line = self._output.readline()
        finally:
            timer.cancel()
        if not line:
            self._process.wait()
            raise WorkerError(
                f"{self.name} has ended with {self._process.returncode} at {request}:\n{self._said()}"
            )
        try:
            answer = json.loads(line)
        except ValueError:
            raise WorkerError(f"{self.name} has answered {line!r} at {request}:\n{self._said()}") from None
        if isinstance(answer, dict) and "error" in answer:
            raise WorkerError(f"{self.name} has failed at {request}:\n{answer['error']}{self._said()}")
        return answer

    def _said(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")


def _there(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise RuntimeError("the process has no such stream")
    return stream


@attrs.frozen
class Fleet:
    """Starts workers.

    Attributes:
        pythons: The Python of each framework.
        files: The file of the worker, next to the framework modules.
        base_url: Base URL of the model server.
    """

    pythons: Mapping[str, Path]
    files: Path
    base_url: str

    @contextmanager
    def started(
        self, names: Mapping[str, str], generation: int, **variables: str
    ) -> Iterator[dict[str, Worker]]:
        """Start a process for each key of ``names``, yield them, and end them afterwards.

        Args:
            names: The framework's name by key.
            generation: Index of this group of processes, from 0; determines their hash seed.
            **variables: Additional environment variables.
        """
        environment = {**clean_environment(generation), BASE_URL_VARIABLE: self.base_url, **variables}
        workers: dict[str, Worker] = {}
        try:
            for key, name in names.items():
                command = [str(self.pythons[name]), str(self.files), name]
                workers[key] = Worker(key, command, environment)
            for worker in workers.values():
                _ = worker.hello
            yield workers
        except BaseException:
            for worker in workers.values():
                worker.kill()
            raise
        finally:
            for worker in workers.values():
                worker.close()


@contextmanager
def model_server() -> Iterator[str]:
    """Yield the base URL of a model server in a separate process.

    Raises:
        WorkerError: It did not start.
    """
    command = [sys.executable, "-m", "benchmarks.peers.model_server"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        start_new_session=True,
    )
    try:
        url = _there(process.stdout).readline().strip()
        if not url:
            raise WorkerError("the model server did not start; its error is printed above")
        yield url
    finally:
        _there(process.stdin).close()
        _there(process.stdout).close()
        process.wait()
