"""Creates an isolated environment per framework once, and reuses it."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from uv import find_uv_bin

from benchmarks.peers.compared import Framework

_READY = "ready.json"
_DIGITS = 12


class NotInstalledError(Exception):
    """An environment cannot be created; the message has the output of uv."""


def environment_folder(framework: Framework, folder: Path) -> Path:
    """Return where in ``folder`` the environment of ``framework`` is.

    The name contains a digest of everything that determines the content, so that a stale one is never used.
    """
    content = [path.read_text(encoding="utf-8") for path in framework.files]
    inputs = [framework.requirements(), content, sys.version, platform.platform(), sys.base_prefix]
    digest = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:_DIGITS]
    return folder.resolve() / f"{framework.name}-{digest}"


def prepared(framework: Framework, folder: Path, say: Callable[[str], None]) -> Path:
    """Return the Python of ``framework``'s environment in ``folder``, and create the environment if missing.

    Args:
        framework: The framework.
        folder: The folder of the environments.
        say: Receives a message before an environment is created.

    Raises:
        NotInstalledError: uv failed. The incomplete environment is removed.
    """
    home = environment_folder(framework, folder)
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if (home / _READY).exists():
        return python
    requirements = framework.requirements()
    say(f"{framework.title}: making an environment with {', '.join(requirements)}")
    shutil.rmtree(home, ignore_errors=True)
    try:
        uv = find_uv_bin()
        _run(uv, "venv", "--quiet", "--python", sys.executable, str(home))
        _run(uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), *requirements)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(home, ignore_errors=True)
        raise NotInstalledError(error.stderr.strip()) from error
    except OSError as error:
        shutil.rmtree(home, ignore_errors=True)
        raise NotInstalledError(str(error)) from error
    (home / _READY).write_text(json.dumps(requirements), encoding="utf-8")
    return python


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
