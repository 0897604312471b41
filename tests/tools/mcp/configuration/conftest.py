"""Configuration files of real servers, and a user without files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.programs import Preloaded
from tests.tools.mcp.processes import is_alive

SCRIPT = Path(__file__).with_name("odd_server.py")


class Project:
    """A folder with ``.mcp.json``, and the log of the servers that it configures.

    Attributes:
        folder: The folder.
        servers: What ``mcpServers`` contains.
    """

    def __init__(self, folder: Path, preloaded: Preloaded) -> None:
        self.folder = folder
        self._preloaded = preloaded
        self.servers: dict[str, Any] = {}

    @property
    def path(self) -> Path:
        """Path of ``.mcp.json``."""
        return self.folder / ".mcp.json"

    def server(self, mode: str, **options: Any) -> dict[str, Any]:
        """Return the configuration of an odd server."""
        folder = self.folder / mode
        folder.mkdir(exist_ok=True)
        command, *arguments = self._preloaded.command(SCRIPT, mode, folder)
        return {"command": command, "args": arguments, **options}

    def add(self, name: str, mode: str, **options: Any) -> Path:
        """Configure an odd server, and return the path of the file."""
        self.servers[name] = self.server(mode, **options)
        return self.write()

    def write(self) -> Path:
        """Write the file and return its path."""
        self.path.write_text(json.dumps({"mcpServers": self.servers}), "utf-8")
        return self.path

    def log(self, mode: str) -> list[str]:
        """Return what the servers of a mode did."""
        file = self.folder / mode / "log"
        return file.read_text("utf-8").splitlines() if file.exists() else []

    def pids(self, mode: str) -> list[int]:
        """Return the ids of all processes of a mode that have started."""
        return [int(line.split()[1]) for line in self.log(mode) if line.startswith("started")]

    def let_go(self, mode: str) -> None:
        """Let what waits for the file ``go`` go on."""
        (self.folder / mode / "go").touch()

    async def logged(self, mode: str, line: str) -> None:
        """Wait until a server has written a line to its log."""
        with anyio.fail_after(60):
            while True:
                if any(one.startswith(line) for one in self.log(mode)):
                    return
                await anyio.sleep(0.01)

    async def all_ended(self) -> None:
        """Return when no process is alive any more."""
        modes = [path.name for path in self.folder.iterdir() if path.is_dir()]
        with anyio.fail_after(60):
            while True:
                if not any(is_alive(pid) for mode in modes for pid in self.pids(mode)):
                    return
                await anyio.sleep(0.01)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own configuration directory, which does not exist yet."""
    directory = tmp_path_factory.mktemp("user") / "config"
    monkeypatch.setenv("KANTAN_AGENTS_CONFIG_DIR", str(directory))
    return directory


@pytest.fixture
def project(tmp_path: Path, preloaded: Preloaded, monkeypatch: pytest.MonkeyPatch) -> Project:
    root = Path(os.path.realpath(tmp_path)) / "project"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    return Project(root, preloaded)
