"""Measures the import time of a framework, in a new interpreter each time."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.peers.fleet import WorkerError, clean_environment

_CODE = "import time\nstart = time.perf_counter()\n{}\nprint(time.perf_counter() - start)"


def import_seconds(name: str, python: Path, statement: str) -> float:
    """Return the seconds that ``statement`` takes with ``python``.

    Args:
        name: The framework, for error messages.
        python: The interpreter.
        statement: The imports that a user needs to create an agent.

    Raises:
        WorkerError: It failed.
    """
    # Isolated, so that nothing is imported from the current folder.
    command = [str(python), "-I", "-c", _CODE.format(statement)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=clean_environment(0))
    if done.returncode:
        raise WorkerError(f"{name} has failed at {statement!r}:\n{done.stderr}")
    return float(done.stdout.split()[-1])
