"""How long it takes to import a framework, in an interpreter of its own each time."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.peers.fleet import WorkerError, clean_environment

_CODE = "import time\nstart = time.perf_counter()\n{}\nprint(time.perf_counter() - start)"


def import_seconds(name: str, python: Path, statement: str) -> float:
    """Return the seconds that ``statement`` takes with ``python``.

    Args:
        name: Whose import it is, for an error.
        python: The interpreter.
        statement: What a user writes to have all that making an agent takes.

    Raises:
        WorkerError: It failed.
    """
    # Isolated, or what is in the current folder would be imported in place of what is installed.
    command = [str(python), "-I", "-c", _CODE.format(statement)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=clean_environment(0))
    if done.returncode:
        raise WorkerError(f"{name} has failed at {statement!r}:\n{done.stderr}")
    return float(done.stdout.split()[-1])
