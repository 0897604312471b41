"""What commands import: a process executes them one after another, because a new one takes long to start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PROGRAM = """
import sys
from kantan_agents.cli.app import invoke

for command in {commands}:
    invoke(command)
    if "agents" in sys.modules:
        sys.exit(f"{{command}} imports the SDK")
"""


def assert_none_imports_the_sdk(
    commands: Sequence[Sequence[str]], *, cwd: Path | None = None, stdin: bytes = b""
) -> None:
    """Execute commands in a new process; fail with the first that imports the SDK."""
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(commands=[list(command) for command in commands])],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
