"""Starts processes that measure guarded tool calls, each with the kantan-agents of its environment."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import Measure

PUBLISHED = "0.1.3"
_HERE = Path(__file__).resolve().parent
_LONGEST_LINE = 1 << 20


class Worker:
    """One such process, which works only on request.

    Attributes:
        versions: The measured packages and their versions; set when the process is ready.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.versions: dict[str, str] = {}

    @classmethod
    @asynccontextmanager
    async def started(cls, python: str, *, ours: bool) -> AsyncIterator[Worker]:
        """Start a process with ``python``, and with this repository's kantan_agents if ``ours`` is true."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        if ours:
            environment["PYTHONPATH"] = str(_HERE.parent)
        process = await asyncio.create_subprocess_exec(
            python,
            # As a module, or isolated: the folder of a script has a statistics.py of its own.
            *(("-m", "benchmarks.guarded_calls") if ours else ("-I", str(_HERE / "guarded_calls.py"))),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
            limit=_LONGEST_LINE,
        )
        try:
            yield cls(process)
        finally:
            if process.stdin is not None:
                process.stdin.close()  # the worker ends with its input
            await process.wait()

    async def ready(self) -> Worker:
        """Wait until the process has started, and return the worker."""
        self.versions = await self._answer()
        return self

    def measure(self, kind: str, case: str) -> Measure:
        """Return the measure of one kind of call with the rules of one case."""

        async def batch(count: int) -> float:
            return float(await self._ask({"kind": kind, "case": case, "count": count}))

        return batch

    async def hostile(self, pattern: str, value: str, limit: float) -> float | None:
        """Return the seconds of one call under a hostile pattern, or None if they are more than ``limit``."""
        task = {"kind": "hostile", "pattern": pattern, "value": value, "limit": limit}
        seconds: float | None = await self._ask(task)
        return seconds

    async def _ask(self, task: dict[str, Any]) -> Any:
        if self._process.stdin is None:
            raise RuntimeError("the worker has no input")
        self._process.stdin.write(json.dumps(task).encode() + b"\n")
        await self._process.stdin.drain()
        return await self._answer()

    async def _answer(self) -> Any:
        if self._process.stdout is None:
            raise RuntimeError("the worker has no output")
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("a worker has ended early; its error is printed above")
        return json.loads(line)


@contextmanager
def published_python(given: str | None) -> Iterator[str | None]:
    """Yield a Python with the published release: the given one, or that of a temporary environment.

    Yields None if it cannot be installed or is not wanted (``"none"``), and prints why to standard error.
    """
    if given == "none":
        _say(f"kantan-agents {PUBLISHED} is left out, as asked for.")
        yield None
    elif given is not None:
        yield given
    else:
        with tempfile.TemporaryDirectory(prefix="kantan-agents-published-") as folder:
            yield _installed(Path(folder))


def _installed(folder: Path) -> str | None:
    # Both must use the same SDK, or its versions would be compared.
    same = [f"{name}=={version(name)}" for name in ("openai-agents", "openai", "pydantic")]
    _say(f"Installing kantan-agents {PUBLISHED} into a temporary environment ...")
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    install = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    try:
        venv.create(folder, with_pip=True)
        subprocess.run([*install, f"kantan-agents=={PUBLISHED}", *same], check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError) as error:
        _say(f"It cannot be installed, so the comparison with it is left out: {error}")
        return None
    return str(python)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
