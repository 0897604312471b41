"""The suite over Python and SDK versions: ``nox``, or one session by ``nox -s NAME``."""

from __future__ import annotations

import subprocess

import nox

nox.options.sessions = ["tests", "newest_sdk"]
nox.options.error_on_missing_interpreters = False
nox.options.default_venv_backend = "venv"


def _starts(python: str) -> bool:
    # A version manager may have a command for every Python it knows, also those that are not selected.
    try:
        return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


PYTHONS = [version for version in ("3.10", "3.11", "3.12", "3.13") if _starts(f"python{version}")]
SUITE = ("python", "-m", "pytest", "-n", "2")


@nox.session(python=PYTHONS or None)
def tests(session: nox.Session) -> None:
    """Run the suite on every Python that is present."""
    session.install("-e", ".[dev]")
    session.run(*SUITE, *session.posargs)


@nox.session
def newest_sdk(session: nox.Session) -> None:
    """Run the suite on the newest SDK; kantan-llm's pin (openai<3) stands against it."""
    session.install("-e", ".[dev]")
    # kantan-llm itself works with openai 3; only its declared dependency does not allow it.
    session.run("python", "-m", "pip", "uninstall", "--yes", "--quiet", "kantan-llm")
    session.install("--upgrade", "openai-agents", "openai>=3")
    session.install("--no-deps", "kantan-llm")
    session.run("python", "-c", _SHOW_VERSIONS)
    session.run(*SUITE, *session.posargs)


_SHOW_VERSIONS = """
from importlib.metadata import version
for name in ("openai-agents", "openai", "kantan-llm"):
    print(name, version(name))
assert int(version("openai").partition(".")[0]) >= 3, "this session must test openai 3 or newer"
"""
